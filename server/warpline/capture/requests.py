"""A request is checked before any process starts."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from warpline.capture import interpreter
from warpline.model.problem import Problem
from warpline.wire.run import Request


def check(request: Request) -> Request:
    """The request with its interpreter filled in. Raises Problem (status 2) if it cannot be run."""
    if not request.module:
        script = Path(request.target)
        if not script.exists():
            raise Problem(f"there is no script {request.target}")
        if not os.access(script, os.R_OK):
            raise Problem(f"cannot read {request.target}")
    if request.cwd and not Path(request.cwd).is_dir():
        raise Problem(f"there is no folder {request.cwd}")
    if request.launcher and shutil.which(request.launcher[0], path=request.environment.get("PATH")) is None:
        raise Problem(f"there is no launcher {request.launcher[0]}")
    return replace(request, python=interpreter.find(request))
