"""Makes a run of the ranks that had written their data when another rank died."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec

from warpline import runs
from warpline.capture.outcome import Outcome
from warpline.model.problem import Problem
from warpline.wire.run import MANIFEST, Manifest


def rescue(partial: Path, outcome: Outcome) -> bool:
    """Make ``partial`` a complete run of the ranks that wrote all of their data; False if none did.

    If rank 0 is missing, the first of these ranks takes its place. Incomplete data of other ranks is removed,
    and a note says which ranks are missing.
    """
    ranks = [folder for folder in (partial, *runs.rank_folders(partial)) if (folder / MANIFEST).is_file()]
    try:
        manifests = [runs.manifest(folder) for folder in ranks]
    except Problem:
        return False
    if not ranks:
        return False
    here = {told.rank for told in manifests}
    for folder in runs.rank_folders(partial):
        if folder not in ranks:
            shutil.rmtree(folder, ignore_errors=True)
    if ranks[0] != partial:
        _promote(ranks[0], partial)
    missing = [str(rank) for rank in range(manifests[0].world_size) if rank not in here]
    if missing:
        _note(partial / MANIFEST, manifests[0], missing, outcome)
    return True


def _promote(rank: Path, run: Path) -> None:
    """``rank`` becomes the run itself."""
    for left in run.iterdir():
        if left.is_file():
            left.unlink()
    for path in sorted(rank.iterdir(), key=lambda path: path.name == MANIFEST):
        path.rename(run / path.name)
    rank.rmdir()


def _note(path: Path, told: Manifest, missing: list[str], outcome: Outcome) -> None:
    which = f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(missing)}"
    failed = outcome.ended is not None and not outcome.ended.clean
    left = f"left no data (a rank {outcome.how})" if failed else "left no data"
    note = f"{which} of {told.world_size} {left}: this is what the others recorded"
    scratch = path.with_name(".manifest")
    scratch.write_bytes(msgspec.json.encode(replace(told, notes=(*told.notes, note))))
    scratch.replace(path)
