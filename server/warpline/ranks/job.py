"""Whether tables are of one job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from warpline.model.problem import Problem
from warpline.ranks.reduce import RankTable


def of_one_job(tables: Sequence[RankTable]) -> Sequence[RankTable]:
    """``tables``. Raises Problem if they cannot be ranks of one job: other scripts or arguments, other
    numbers of ranks, runs of a single process, or the same rank of two runs."""
    ordered = sorted(tables, key=lambda one: one.source)
    runs = [one for one in ordered if one.job]
    for one, other in pairwise(runs):
        if one.job != other.job:
            raise _apart(one, other, f"one ran {one.job}, the other {other.job}")
    worlds = [one for one in ordered if one.job or one.world > 1]
    for one, other in pairwise(worlds):
        if one.world != other.world:
            raise _apart(one, other, f"one is of {one.world} ranks, the other of {other.world}")
    first: dict[int, RankTable] = {}
    for one in runs:
        other = first.setdefault(one.rank if one.world > 1 else 0, one)
        if other is not one:
            why = f"both are rank {one.rank}" if one.world > 1 else "each is a run of one process"
            raise _apart(other, one, f"{why} (warpline compare shows two runs)")
    return tables


def _apart(one: RankTable, other: RankTable, why: str) -> Problem:
    return Problem(f"{one.source} and {other.source} are not ranks of one job: {why}")
