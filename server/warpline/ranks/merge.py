"""Tables of ranks -> one: each line's mean, slowest rank and spread, and the rank that the others wait for.

Ranks are aligned by step, never by clock: all of them leave a collective together, so the one that was in it
for the shortest time came last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from warpline import runs
from warpline.attribution.communication import late_rank, most_late_ms
from warpline.model.problem import Problem
from warpline.model.ranks import LATE_RANK_PERCENT, LateLine
from warpline.ranks.reduce import LineTime, RankTable, table_of

#: Of what the others wait for a rank, the line that the report names has more than this share: no other line
#: can have as much.
MOST = 0.5
_MOST_NAMED = 5  # notes, so that hundreds of ranks do not make a page of them


@dataclass(frozen=True, slots=True)
class MergedLine:
    """Milliseconds per step. A rank on which the line costs nothing counts as 0."""

    file: str
    line: int
    function: str
    mean_ms: float
    slowest_ms: float
    slowest_rank: int
    spread_ms: float  # slowest less quickest


@dataclass(frozen=True, slots=True)
class Straggler:
    rank: int
    late_ms: float  # per step: how long the others waited for it, on average
    file: str = ""  # the line that costs it most, compared with the median of the others; "": none
    line: int = 0
    more_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Merged:
    ranks: tuple[int, ...]
    world: int
    step_ms: float  # of the slowest rank
    lines: tuple[MergedLine, ...]  # by mean, the largest first
    straggler: Straggler | None
    notes: tuple[str, ...]


def merge(tables: Sequence[RankTable]) -> Merged:
    """The same for any order of ``tables``. Raises Problem where they are of several jobs."""
    notes = [
        f"{one.source} was left out: {one.problem}" for one in sorted(tables, key=_source) if one.problem
    ]
    if len(notes) > _MOST_NAMED:
        notes = [*notes[:_MOST_NAMED], f"{len(notes) - _MOST_NAMED} more were left out in the same way"]
    readable = [one for one in tables if not one.problem]
    _check_one_job(readable)
    newest, doubts = _newest(readable)
    good, doubt = _numbered(newest)
    notes += [*doubts, *doubt]
    world = max((one.world for one in good), default=0)
    if 0 < len(good) < world:
        notes.append(f"{world - len(good)} of {world} ranks are missing")
    lines = _lines(good)
    if len(good) > 1 and lines and not any(_on_several(good)):
        notes.append("no line has any time on two of them: they may not be ranks of one job")
    straggler, why = _straggler(good)
    notes += why
    ranks = tuple(one.rank for one in good)
    return Merged(
        ranks, world, max((one.step_ms for one in good), default=0.0), lines, straggler, tuple(notes)
    )


def _source(table: RankTable) -> str:
    return table.source


def _check_one_job(tables: Sequence[RankTable]) -> None:
    newest: dict[str, RankTable] = {}
    for one in sorted(tables, key=_when):
        if one.job:
            newest[one.job] = one
    if len(newest) > 1:
        said = ", ".join(f"{job} ({newest[job].source})" for job in sorted(newest))
        raise Problem(f"these are not the ranks of one job: {said}; name the recordings of one of them")


def _newest(tables: Sequence[RankTable]) -> tuple[list[RankTable], list[str]]:
    """The tables of the newest recording, where a job was recorded several times; all that do not say which
    rank they are."""
    found = {one.rank: one for one in sorted(tables, key=_when) if one.job}
    older = [one for one in tables if one.job and found[one.rank] is not one]
    if not older:
        return list(tables), []
    begin_ns = _newest_begins_ns(found, older)
    kept = [one for one in tables if not one.job or (found[one.rank] is one and one.begun_ns >= begin_ns)]
    count = len(tables) - len(kept)
    them = "a rank of an older recording was" if count == 1 else f"{count} ranks of older recordings were"
    return kept, [f"{them} left out"]


def _newest_begins_ns(found: dict[int, RankTable], older: Sequence[RankTable]) -> int:
    """When the newest recording began: after the longest pause between the last table of ``older`` and the
    first rank recorded again. A rank that was recorded once may belong to either.

    0 if there is no such pause: the clocks of the ranks differ too much.
    """
    last = max(one.begun_ns for one in older)
    first = min(found[one.rank].begun_ns for one in older)
    if first <= last:
        return 0
    between = sorted(one.begun_ns for one in found.values() if last < one.begun_ns < first)
    moments = np.array([last, *between, first])
    return int(moments[np.diff(moments).argmax() + 1])


def _when(table: RankTable) -> tuple[int, str]:
    return table.begun_ns, table.source


def _numbered(tables: Sequence[RankTable]) -> tuple[list[RankTable], list[str]]:
    """The tables by rank; in order of their names where ranks are unknown or the same."""
    numbers = [one.rank for one in tables]
    if -1 not in numbers and len(set(numbers)) == len(numbers):
        return sorted(tables, key=lambda one: one.rank), []
    ordered = sorted(tables, key=_source)
    if len(tables) == 1:
        return [replace(ordered[0], rank=max(0, ordered[0].rank))], []
    note = "the traces do not contain their rank: they are numbered in the order of their names"
    return [replace(one, rank=at) for at, one in enumerate(ordered)], [note]


def _lines(tables: Sequence[RankTable]) -> tuple[MergedLine, ...]:
    places: dict[tuple[str, int, str], int] = {}
    for one in tables:
        for cost in one.lines:
            places.setdefault((cost.file, cost.line, cost.function), len(places))
    ms = np.zeros((len(places), max(1, len(tables))))
    for column, one in enumerate(tables):
        for cost in one.lines:
            ms[places[cost.file, cost.line, cost.function], column] += cost.step_ms
    mean, slowest = ms.mean(axis=1), ms.argmax(axis=1)
    found = [
        MergedLine(
            *place, float(mean[row]), float(ms[row, slowest[row]]), tables[int(slowest[row])].rank,
            float(ms[row].max() - ms[row].min()),
        )
        for place, row in places.items()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda line: (-line.mean_ms, line.file, line.line, line.function)))


def _on_several(tables: Sequence[RankTable]) -> Iterator[bool]:
    """Whether each line is on more than one rank."""
    ranks = Counter(place for one in tables for place in {(cost.file, cost.line) for cost in one.lines})
    return (count > 1 for count in ranks.values())


def _straggler(tables: Sequence[RankTable]) -> tuple[Straggler | None, list[str]]:
    """The rank that came last in every step, if the others waited for it; and why it is not known."""
    if len(tables) < 2:
        return None, []
    shapes = {tuple(map(len, one.exchanges_ns)) for one in tables}
    if len(shapes) > 1 or not any(next(iter(shapes))):
        missing = "have no" if len(shapes) == 1 else "differ in their"
        return None, [f"it is unknown whether one rank is slower than the others: they {missing} collectives"]
    steps = []
    for step in zip(*(one.exchanges_ns for one in tables), strict=True):
        lengths = np.array(step, np.int64)
        steps.append((lengths - lengths.min(axis=0)).sum(axis=1))
    waits = np.stack(steps, axis=1) / 1e6  # ranks x steps, ms
    found = late_rank(waits)
    if found is None:
        return None, []
    last, of_steps = found
    late, recorded_ms = tables[last], float(np.mean(tables[last].steps_ns)) / 1e6
    others = [one.host_ns for at, one in enumerate(tables) if at != last]
    most_ms = most_late_ms(recorded_ms * 1e6, late.pace_ns, others)
    late_ms = min(float(of_steps.mean()), most_ms)
    # In every step: of few ranks and steps, one may be the last in all of them by chance.
    if min(float(of_steps.min()), most_ms) * 100 < LATE_RANK_PERCENT * recorded_ms:
        return None, []
    plain_ms = _without_recording(tables, last, late_ms, recorded_ms)
    only_recorded = late_ms <= recorded_ms - late.step_ms and not all(one.sampled for one in tables)
    if late.timed and (only_recorded or plain_ms * 100 < LATE_RANK_PERCENT * late.step_ms):
        return None, [f"rank {late.rank} comes last, perhaps only because it is being recorded"]
    return _blamed(tables, last, plain_ms), []


def _without_recording(
    tables: Sequence[RankTable], last: int, recorded_late_ms: float, recorded_ms: float
) -> float:
    """What the others wait for rank ``last`` where nothing is recorded.

    Recording slows plain Python most, so a rank that is late by it is later still in the captured steps.
    Nobody waits for longer than a step takes; without a device the wait shrinks as the step does; and where
    lines were sampled it is no more than what the rank spends on its lines beyond what the others do.
    """
    late = tables[last]
    if not late.timed:
        return recorded_late_ms
    late_ms = min(recorded_late_ms, late.step_ms)
    if late.on_host and recorded_ms > 0:
        late_ms = min(late_ms, recorded_late_ms * late.step_ms / recorded_ms)
    if all(one.sampled for one in tables):
        late_ms = min(late_ms, sum(more for _, more in _surplus(tables, last)))
    return late_ms


def _blamed(tables: Sequence[RankTable], last: int, late_ms: float) -> Straggler:
    """The late rank with the line at which it spends most more than the others, exchanges left out."""
    found = Straggler(tables[last].rank, late_ms)
    cost, more = max(_surplus(tables, last), key=lambda one: one[1], default=(None, 0.0))
    return replace(found, file=cost.file, line=cost.line, more_ms=more) if cost is not None else found


def line_of(late_rank: int, late_ms: float, path: Path, own: RankTable) -> LateLine | None:
    """The line that makes a rank of the run in ``path`` late, for the run's own report.

    ``late_rank``: 0 for the run's own rank, whose table ``own`` is, else the number of the rank's folder,
    counted from 1. None where no line has more than ``MOST`` of the ``late_ms`` that the others wait, where
    uneven batches slow all lines, say. At most two traces are read, because the report waits for them.
    """
    folders = runs.rank_folders(path)
    others = [at for at in range(1, len(folders) + 1) if at != late_rank]
    read = [late_rank, *others[:1]] if late_rank else others[:2]
    tables = [own, *(table_of(folders[at - 1]) for at in read)]
    last = 1 if late_rank else 0
    if tables[last].problem:
        return None
    kept = [one for one in tables if not one.problem]
    found = _blamed(kept, last, late_ms)
    if not found.file or found.more_ms <= MOST * late_ms:
        return None
    return LateLine(found.file, found.line, found.more_ms)


def _surplus(tables: Sequence[RankTable], last: int) -> list[tuple[LineTime, float]]:
    """Lines of rank ``last`` that take longer there than the median of the others, and by how many ms."""
    others: dict[tuple[str, int], list[float]] = {}
    for at, one in enumerate(tables):
        for cost in one.lines:
            if at != last:
                others.setdefault((cost.file, cost.line), []).append(cost.step_ms - cost.communication_ms)
    found = []
    for cost in tables[last].lines:
        usual = others.get((cost.file, cost.line), [])
        usual = usual + [0.0] * (len(tables) - 1 - len(usual))
        more = cost.step_ms - cost.communication_ms - float(np.median(usual))
        if more > 0:
            found.append((cost, more))
    return found
