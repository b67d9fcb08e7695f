"""Which interpreter runs the script."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from warpline.model.problem import Problem
from warpline.wire.run import Request

#: Launchers that start any program, so that the interpreter is behind them.
_STARTS_PROGRAMS = ("srun", "mpirun", "mpiexec", "orterun", "prterun", "prun")
_STARTS_PYTHON = ("torchrun", "accelerate", "deepspeed")
_PYTHON = re.compile(r"(python|pypy)[\d.]*[a-z]?")


def started_by(request: Request) -> tuple[str, ...]:
    """The words before the script: the interpreter, or the launcher, with the interpreter behind ``srun`` and
    ``mpirun`` unless one is named there. ``torchrun`` and its like start their own."""
    if not request.launcher:
        return (request.python or find(request),)
    names = ["" if "=" in word else Path(word).name for word in request.launcher]  # NAME=VALUE: a variable
    named = any(_PYTHON.fullmatch(name) or name in _STARTS_PYTHON for name in names[1:])
    found = from_beside(request.launcher, request.python, request.environment.get("PATH"))
    if named or names[0].partition(".")[0] not in _STARTS_PROGRAMS:
        return found
    return (*found, request.python or find(request))


def from_beside(launcher: Sequence[str], python: str, path: str | None = None) -> tuple[str, ...]:
    """A launcher's command, its program from beside the interpreter ``python`` where the PATH has none such.

    ``path``: the PATH; None is our own. It lacks an environment's programs where that is not activated, as in
    an editor that was started from a menu.
    """
    program, *rest = launcher
    if os.sep not in program and python and shutil.which(program, path=path) is None:
        beside = Path(python).parent / program  # not ``with_name``: it raises for "."
        program = str(beside) if beside.is_file() and os.access(beside, os.X_OK) else program
    return (program, *rest)


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
