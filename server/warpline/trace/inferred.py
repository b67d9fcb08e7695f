"""Library lines of calls that were recorded without them.

Of a function that runs too many lines only its calls are recorded, at its ``def``, and of a few of them all
lines after that. A call that runs the same operators and calls the same functions in the same order as one of
those, for the same module, ran the same lines: the n-th operator stands at the same line in both. The records
of the one are fitted between the operators of the other. A call that is like none of them stays at the
``def``, and so do all calls where those in full disagree, or where a line of the function ran for the module
at any time, as in the capture's first step, and in none of them: it may have run in any other call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from warpline.trace import nest
from warpline.trace.columns import OP, Bools, Host, Ints, Records, take
from warpline.wire.inside import LibraryLocations

#: What a call does is kept as numbers. An operator is the number of its name, from 0 up. This code says that
#: the call goes on after a function that it called, and smaller ones say which function it calls.
_GOES_ON = -1
_USER = 0  # the frame that stands for the user's code: that of location 0


def with_inferred(records: Records, host: Host, table: LibraryLocations) -> Records:
    """``records`` of library lines, with those that calls at a ``def`` lack."""
    brief = np.isin(records.location, table.at_def)
    if not brief.any():
        return records
    calls = _Calls(records, brief, table)
    unseen = _unseen(records, calls, table)
    wanted: list[_Call] = []
    full: list[_Call] = []
    alike: dict[tuple[int, bytes], _Call | None] = {}  # None: they are not at the same lines
    for call in calls.each(host):
        if brief[call.row] and records.again[call.own[1:]].all():
            wanted.append(call)
        elif brief[call.row]:
            full.append(call)
            key = (call.frame, call.does)
            known = alike.get(key, call)
            alike[key] = call if known is not None and np.array_equal(known.lines, call.lines) else None
    location, again = records.location.copy(), records.again.copy()
    for call in full:
        _begins(records, location, again, call, call)
    more: list[tuple[Ints, Ints, Ints, Bools]] = []
    for call in wanted:
        like = alike.get((call.frame, call.does))
        if like is not None and len(like.does) and call.frame not in unseen:
            more.append(_fitted(records, location, call, like))
            _begins(records, location, again, call, like)
    if not more:
        return replace(records, location=location, again=again)
    row, time_ns, place, back = (np.concatenate(each) for each in zip(*more, strict=True))
    by = np.argsort(np.append(np.arange(len(location)), row), kind="stable")
    thread = np.append(records.thread, records.thread[row])[by]
    return replace(
        records,
        time_ns=np.append(records.time_ns, time_ns)[by],
        thread=thread,
        location=np.append(location, place)[by],
        first=np.searchsorted(thread, np.arange(len(records.first))),
        again=np.append(again, back)[by],
        inferred=np.append(records.inferred, np.ones(len(row), bool))[by],
    )


def _unseen(records: Records, calls: _Calls, table: LibraryLocations) -> set[int]:
    """The functions, each for a module, with lines that ran while their calls were not recorded, and never in
    one that was. The table has every line that ever ran."""
    ran = dict(zip(table.locations, calls.frames.tolist(), strict=True))  # a line may be there several times
    seen = {table.locations[at] for at in {*table.at_def, *np.unique(records.location).tolist()}}
    return {frame for place, frame in ran.items() if place not in seen}


@dataclass(frozen=True, slots=True)
class _Call:
    row: int  # of the record with which it begins
    frame: int  # its function and module
    does: bytes  # the operators that it runs and the functions that it calls, in order
    when: Ints  # when it begins, does each of these, and ends
    lines: Ints  # the location at each of these, but for calls that it makes
    own: Ints  # its records
    parts: Ints  # of the records: its first, those of calls that it makes, and those to which it comes back


class _Calls:
    """Splits records into calls: where each begins and ends, and what it does."""

    def __init__(self, records: Records, brief: Bools, table: LibraryLocations) -> None:
        self.records = records
        numbers: dict[tuple[int, int], int] = {}
        frames = [
            numbers.setdefault((function, module), len(numbers)) for _, _, function, module in table.locations
        ]
        self.frames = np.array(frames, np.int64)  # of each location
        self.begins: list[int] = []  # the first record of each call
        self.end_ns: list[int] = []  # -1: unknown
        self.of_row = np.full(len(brief), -1, np.int64)
        self.frame = self.frames[records.location]
        self.turns: list[tuple[int, int, int]] = []  # (call, row, what it does there)
        for low, high in pairwise(records.first.tolist()):
            self._follow(low, high, brief)

    def _follow(self, low: int, high: int, brief: Bools) -> None:
        """Follows the calls of one thread through its records, the rows from ``low`` to ``high``."""
        stack: list[tuple[int, int]] = []  # (frame, call) of what runs; call -1: unknown
        rows = slice(low, high)
        columns = (self.frame[rows], self.records.again[rows], brief[rows], self.records.time_ns[rows])
        each_row = zip(*(each.tolist() for each in columns), strict=True)
        found = []
        for row, (frame, again, short, now) in enumerate(each_row, low):
            if frame == _USER:
                self._ended(stack[-1:], now)
                del stack[-1:]
                if not stack or stack[-1][0] != _USER:
                    stack.append((_USER, -1))
            elif again:
                at = len(stack) - 1
                while at >= 0 and stack[at][0] != frame:
                    at -= 1
                self._ended(stack[at + 1 :] if at >= 0 else [], now)
                del stack[at + 1 if at >= 0 else len(stack) :]
                if at < 0:
                    stack.append((frame, -1))
                elif stack[-1][1] >= 0:
                    self.turns.append((stack[-1][1], row, _GOES_ON))
            elif short or not stack or stack[-1][0] != frame:
                if stack and stack[-1][1] >= 0:
                    self.turns.append((stack[-1][1], row, _GOES_ON - 1 - frame))
                stack.append((frame, len(self.begins)))
                self.begins.append(row)
                self.end_ns.append(-1)
            found.append(stack[-1][1])
        self.of_row[rows] = found

    def _ended(self, stack: list[tuple[int, int]], now: int) -> None:
        for _, call in stack:
            if call >= 0:
                self.end_ns[call] = now

    def each(self, host: Host) -> Iterator[_Call]:
        """Yields the calls whose end is known."""
        records = self.records
        last = nest.last_before(records.thread, records.time_ns, host.thread, host.start_ns)
        # An operator that another one calls stands where that one does, but for Python within it.
        outer = (host.parent < 0) | (take(last, host.parent, missing=-1) != last)
        op = np.flatnonzero((host.kind == OP) & outer & (take(self.of_row, last, missing=-1) >= 0))
        turn, row, does = np.array(self.turns, np.int64).reshape(-1, 3).T
        call = np.append(turn, self.of_row[last[op]])
        when = np.append(records.time_ns[row], host.start_ns[op])
        does = np.append(does, host.name[op])
        row = np.append(row, last[op])
        by = np.lexsort((when, np.append(np.zeros(len(turn)), np.ones(len(op))), row, call))
        call, when, does, row = call[by], when[by], does[by], row[by]
        parts = np.append(np.ones(len(turn), bool), np.zeros(len(op), bool))[by]
        bounds = np.searchsorted(call, np.arange(len(self.begins) + 1)).tolist()
        own = np.argsort(self.of_row, kind="stable")
        owns = np.searchsorted(self.of_row[own], np.arange(len(self.begins) + 1)).tolist()
        for number, (begin, end_ns) in enumerate(zip(self.begins, self.end_ns, strict=True)):
            if end_ns < 0:
                continue
            low, high = bounds[number : number + 2]
            doing = does[low:high]
            yield _Call(
                begin,
                int(self.frame[begin]),
                doing.tobytes(),
                np.concatenate([records.time_ns[begin : begin + 1], when[low:high], [end_ns]]),
                records.location[row[low:high][doing >= _GOES_ON]],
                own[slice(*owns[number : number + 2])],
                np.append(begin, row[low:high][parts[low:high]]),
            )


def _begins(records: Records, location: Ints, again: Bools, call: _Call, like: _Call) -> None:
    """Moves the first record of ``call`` from the ``def`` to the first line of ``like``. It does not count as
    a beginning of that line, which has a record of its own."""
    location[call.row] = records.location[like.own[1]]
    again[call.row] = True


def _fitted(records: Records, location: Ints, call: _Call, like: _Call) -> tuple[Ints, Ints, Ints, Bools]:
    """Gives the records of ``call`` the locations of those of ``like``. Returns the others of ``like``,
    fitted into ``call``: the row after which each stands, its time, its location, and whether Python came
    back."""
    met = np.isin(like.own, like.parts)
    location[call.own] = records.location[like.own[met]]
    rest = like.own[~met]
    part = np.searchsorted(like.parts, rest) - 1
    row = call.parts[part]
    begin, began = like.when[0], call.when[0]
    time_ns = began + np.interp(records.time_ns[rest] - begin, like.when - begin, call.when - began).astype(
        np.int64
    )
    return row, np.maximum(time_ns, records.time_ns[row]), records.location[rest], records.again[rest]
