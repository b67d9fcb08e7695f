"""Which files and folders hold the ranks of a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpline import runs
from warpline.trace import foreign


def of_ranks(paths: Sequence[Path]) -> list[Path]:
    """One path for each rank that ``paths`` stand for: run folders, or trace files. Raises Problem."""
    found: dict[Path, None] = {}
    for path in paths:
        if runs.is_run(path):
            found.update(dict.fromkeys((path, *runs.rank_folders(path))))
        elif path.is_dir() and (below := sorted(one for one in path.iterdir() if runs.is_run(one))):
            found.update(dict.fromkeys(below))
        else:
            found.update(dict.fromkeys(foreign.traces(path)))
    return list(found)
