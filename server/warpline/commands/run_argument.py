"""RUN on a command line: a run folder, a name in ``.warpline/runs``, or nothing for the newest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.wire.run import Request


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder or its name (the newest)")


def find(word: str | None) -> Path:
    """The run folder that ``word`` names. Raises Problem when there is none."""
    from warpline import runs

    folder = runs.nearest(Path.cwd())
    if word is None:
        return runs.newest(folder)
    for path in (Path(word).absolute(), folder / word):
        if runs.is_run(path):
            return path
    if Path(word).exists():
        raise Problem(f"{word} is not a run folder: it has no manifest.json")
    raise Problem(f"there is no run {word}, here or in {folder}")


def previous(run: Path) -> Path:
    """The newest run before ``run``, beside it, of the same script. Raises Problem when there is none."""
    from warpline import runs

    script = runs.manifest(run).script
    for path in sorted(run.parent.glob("*"), reverse=True):
        if path.name < run.name and runs.is_run(path) and runs.manifest(path).script == script:
            return path
    raise Problem(f"there is no run of {script} before {run.name} in {run.parent}")


def newest_of(request: Request, folder: Path) -> Path:
    """The newest run in ``folder`` of the script or module that ``request`` names. Raises Problem."""
    from warpline import runs

    if not request.module:
        script = Path(request.target)
        return runs.newest(folder, script / "__main__.py" if script.is_dir() else script)
    name = request.target
    for path in sorted(folder.glob("*"), reverse=True):
        asked = runs.manifest(path).request if runs.is_run(path) else None
        if asked is not None and asked.module and asked.target == name:
            return path
    raise Problem(f"no run of -m {name} in {folder}: make one with `warpline profile -m {name}`")
