"""RUN on a command line: a run folder, a name in ``.warpline/runs``, or nothing for the newest."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpline.model.problem import Problem


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run folder or its name (the newest)")


def find(word: str | None) -> Path:
    """The run folder that ``word`` names. Raises Problem when there is none."""
    from warpline import runs

    folder = Path.cwd() / ".warpline" / "runs"
    if word is None:
        return runs.newest(folder)
    for path in (Path(word).absolute(), folder / word):
        if runs.is_run(path):
            return path
    if Path(word).exists():
        raise Problem(f"{word} is no run folder: it has no manifest.json")
    raise Problem(f"there is no run {word}, here or in {folder}")
