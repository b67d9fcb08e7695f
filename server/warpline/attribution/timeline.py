"""The activity of each host thread over time, as pieces without overlaps or gaps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from warpline.attribution.compiled import Group
from warpline.attribution.place import Placed, inside_at, python_inside
from warpline.attribution.table import LineTable
from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Ints, Trace, take


@dataclass(frozen=True, slots=True)
class Pieces:
    """Spans in ns with their owner; those of one thread are sorted and disjoint."""

    start_ns: Ints
    end_ns: Ints
    op: Ints  # innermost host event, -1: none
    line: Ints
    working: Bools  # an operator runs, and no Python inside it
    inside: Ints  # library line, 0: none

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def length_ns(self) -> Ints:
        """The length of each piece."""
        return self.end_ns - self.start_ns

    def take(self, rows: Ints | Bools) -> Pieces:
        """A selection of the pieces, by row number or by mask."""
        return Pieces(
            self.start_ns[rows], self.end_ns[rows], self.op[rows], self.line[rows], self.working[rows],
            self.inside[rows],
        )  # fmt: skip


def timelines(
    trace: Trace,
    table: LineTable,
    placed: Placed,
    window: tuple[int, int],
    changed: tuple[Ints, Ints, Ints],
) -> list[Pieces]:
    """One for each thread; each covers ``window`` without gaps. ``changed``: see ``nest.innermost``."""
    bounds = np.searchsorted(changed[0], np.arange(len(trace.threads) + 1)).tolist()
    return [
        _timeline(trace, (table, placed), thread, (changed[1][low:high], changed[2][low:high]), window)
        for thread, (low, high) in enumerate(pairwise(bounds))
    ]


def _timeline(
    trace: Trace,
    located: tuple[LineTable, Placed],
    thread: int,
    changed: tuple[Ints, Ints],
    window: tuple[int, int],
) -> Pieces:
    host, records = trace.host, trace.records
    (table, placed), (times, ops) = located, changed
    first, last = records.first[thread], records.first[thread + 1]
    lines = records.time_ns[first:last]
    libraries = trace.inside.time_ns[slice(*trace.inside.first[thread : thread + 2].tolist())]
    cuts, before = distinct(*(np.clip(each, *window) for each in (times, lines, libraries)), np.array(window))
    start, end = cuts[:-1], cuts[1:]
    at = nest.latest(lines, start)
    # Of all up to each start, those that are no changes are left out: the window's start is one.
    op = take(ops, before[:-1] - 1 - (at + 1) - (nest.latest(libraries, start) + 1) - 1)
    record = np.where(at >= 0, at + first, -1)
    location = take(records.location, record, missing=0)
    line = table.of_location[np.maximum(location, 0)]
    inside = inside_at(trace, np.full(len(start), thread), start, record)
    itself = (op >= 0) & ~python_inside(trace, record, take(placed.record, op))
    line = np.where(itself, take(placed.line, op), line)
    if len(trace.inside.time_ns):
        inside = np.where(itself, take(placed.inside, op), inside)
    working = itself & (take(host.kind, op) == OP)
    calls, pieces = placed.calls, Pieces(start, end, op, line, working, inside)
    if not calls.groups:
        return pieces
    group = take(calls.of_event, op)
    if trace.on_gpu:  # else the regions themselves compute
        preparing = calls.next_group(op, start)
        group = np.where(preparing >= 0, preparing, group)
    group = np.where(itself, group, -1)
    return _among_lines(pieces, group, calls.groups)


def _among_lines(pieces: Pieces, group: Ints, groups: tuple[Group, ...]) -> Pieces:
    """``pieces``; those of compiled calls are cut into equal parts, one for each line of their group.
    ``group``: of each piece, -1 for none."""
    if not (group >= 0).any():
        return pieces
    first = np.concatenate([[0], np.cumsum([len(lines) for _, lines, _ in groups])])
    every = np.concatenate([np.array(lines, np.int64) for _, lines, _ in groups])
    count = np.where(group >= 0, np.diff(first)[group], 1)
    of = np.repeat(np.arange(len(pieces)), count)
    part = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    parts, length = pieces.take(of), pieces.length_ns[of]
    line = np.where(group[of] >= 0, every[np.where(group[of] >= 0, first[group[of]] + part, 0)], parts.line)
    start = parts.start_ns + length * part // count[of]
    end = parts.start_ns + length * (part + 1) // count[of]
    kept = end > start
    return Pieces(start, end, parts.op, line, parts.working, parts.inside).take(kept)


def overlay(pieces: Pieces, start: Ints, end: Ints) -> tuple[Pieces, Ints]:
    """The parts of ``pieces`` (which have no gaps) inside disjoint sorted spans, and the span of each
    part."""
    if not len(pieces) or not len(start):
        return pieces.take(np.zeros(0, np.int64)), np.zeros(0, np.int64)
    first = np.maximum(np.searchsorted(pieces.start_ns, start, "right") - 1, 0)
    count = np.maximum(np.searchsorted(pieces.start_ns, end) - first, 0)
    span = np.repeat(np.arange(len(start)), count)
    part = pieces.take(np.arange(len(span)) + np.repeat(first - (np.cumsum(count) - count), count))
    low, high = np.maximum(part.start_ns, start[span]), np.minimum(part.end_ns, end[span])
    kept = high > low
    cut = Pieces(low, high, part.op, part.line, part.working, part.inside)
    return (cut, span) if kept.all() else (cut.take(kept), span[kept])


def distinct(*sorted_runs: Ints) -> tuple[Ints, Ints]:
    """The distinct values of several sorted columns, sorted (by merging: much faster than hashing), and how
    many of all values are not larger than each."""
    values = np.sort(np.concatenate(sorted_runs), kind="stable")
    first = np.ones(len(values), bool)
    first[1:] = values[1:] != values[:-1]
    at = np.flatnonzero(first)
    return values[at], np.append(at[1:], len(values))


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union of spans, as disjoint sorted spans."""
    kept = end > start
    start, end = start[kept], end[kept]
    by = np.argsort(start, kind="stable")
    start, end = start[by], end[by]
    reach = np.maximum.accumulate(end)
    first = np.ones(len(start), bool)
    first[1:] = start[1:] > reach[:-1]
    at = np.flatnonzero(first)
    return start[at], np.maximum.reduceat(reach, at) if len(at) else reach


def complement(start: Ints, end: Ints, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """The parts of ``window`` outside of the disjoint sorted spans."""
    begin = np.concatenate([[window[0]], np.clip(end, *window)])
    until = np.concatenate([np.clip(start, *window), [window[1]]])
    kept = until > begin
    return begin[kept].astype(np.int64), until[kept].astype(np.int64)


def without(start: Ints, end: Ints, cut: Ints, until: Ints, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """Disjoint sorted spans minus other disjoint sorted spans."""
    outside = complement(start, end, window)
    return complement(*union(np.concatenate([outside[0], cut]), np.concatenate([outside[1], until])), window)
