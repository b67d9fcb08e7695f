"""Which interpreter runs the script."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from warpline.model.problem import Problem
from warpline.wire.run import Request


def find(request: Request) -> str:
    """The interpreter's path: the one asked for, else the first that is likely to be meant.

    In order: ``$VIRTUAL_ENV``, a ``.venv`` or ``venv`` in the working folder or above it, our own
    when torch lies beside us, ``python3`` on the PATH. Raises Problem when the one asked for is not there.
    """
    if request.python:
        found = shutil.which(request.python, path=request.environment.get("PATH"))
        if found is None:
            raise Problem(f"there is no Python interpreter {request.python}")
        return found
    active = request.environment.get("VIRTUAL_ENV") or os.environ.get("VIRTUAL_ENV")
    folder = Path(request.cwd or os.curdir).absolute()
    places = [Path(active)] if active else []
    places += [place / name for place in (folder, *folder.parents) for name in (".venv", "venv")]
    for place in places:
        if os.access(place / "bin" / "python", os.X_OK):
            return str(place / "bin" / "python")
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python3") or shutil.which("python") or sys.executable
