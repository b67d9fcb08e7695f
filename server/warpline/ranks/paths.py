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
        below = sorted(one for one in path.iterdir() if runs.is_run(one)) if path.is_dir() else []
        if whole := [path] if runs.is_run(path) else below:
            found.update((each, None) for run in whole for each in (run, *runs.rank_folders(run)))
        else:
            found.update(dict.fromkeys(foreign.traces(path)))
    return list(found)
