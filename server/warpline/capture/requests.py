"""Checks a request before any process starts."""

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
    python, path = interpreter.find(request), request.environment.get("PATH")
    if request.launcher:
        program = interpreter.from_beside(request.launcher, python, path)[0]
        if shutil.which(program, path=path) is None:
            raise Problem(
                f"there is no launcher {program} on the PATH, nor beside {python} (--python chooses another)"
            )
    return replace(request, python=python)
