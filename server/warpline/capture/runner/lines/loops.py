"""Finds quick loops, loops of plain Python that are recorded only at their start and end.

A line event costs several times as much as a short line, so a loop over numbers would be captured at a tenth
of its speed. The rehearsal, one step with all line events, shows which lines run often without starting an
operator. Within a loop of such lines, line events are left out. The capture gives the loop's time; the
rehearsal gives each line's share of it.

No operator is attributed to a wrong line: after the capture ``surprised_by`` checks whether one began in such
a loop. If so, the steps are captured again with all lines of that code.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING

from ....wire.records import AGAIN
from .flow import loops
from .onlyline import GENERATOR
from .paused import functions_of, rewritten, written

if TYPE_CHECKING:
    from .locations import CodeLines, Locations

OFTEN = 200  # runs of a line per step
QUICK_NS = 3_000  # mean time of a line with its record; for a slower line the record matters little
MOST_NS = 10 * QUICK_NS  # cap on one run's time: more is a preemption, or the line is not quick
WORTH = 0.1  # share of the step that the records of such lines must have cost
USUAL_RECORD_NS = 250
LEAST_SHARE = 0.1  # share of a line's time that is kept when the cost of its records is subtracted
MOST_RECORDS = 2_000_000  # examined per thread; the start of a longer step is enough
SHORT_NS = 10_000  # the time of a shorter loop is not divided among its lines
LONG = 50  # lines a run of a loop: a shorter one is not worth two calls that switch the trace function


class Loop:
    """A quick loop: lines of one code object, by location, with their ``shares`` of the loop's time and the
    number of ``times`` that each began in the rehearsal.

    ``offsets``: where line events are left out; None: in the whole function. ``paused``: instead, code that
    switches the trace function off around the loop.
    """

    paused: CodeType | None = None

    def __init__(
        self, code: CodeType, offsets: set[int] | None, shares: dict[int, float], times: dict[int, float]
    ) -> None:
        self.code = code
        self.offsets = offsets
        self.shares = shares
        self.times = times


def worth_a_look(locations: Locations, step_ns: float) -> bool:
    """Whether the records of lines that ran often cost so much that a search for quick loops pays."""
    counts: Counter[int] = Counter()
    for records in locations.all_records:
        counts.update(records.pairs[1::2])
    return USUAL_RECORD_NS * sum(times for times in counts.values() if times >= OFTEN) > WORTH * step_ns


def find(
    locations: Locations,
    began_ns: list[int],
    record_ns: float,
    whole_functions: bool,
    never: set[CodeType],
    *,
    may_pause: bool = False,
) -> list[Loop]:
    """The quick loops in the recording.

    ``began_ns``: when operators and launches began. ``record_ns``: the cost of a line record.
    ``whole_functions``: line events can only be left out for whole functions. ``never``: code objects to
    skip. ``may_pause``: the trace function may be switched off around a loop. More loops can be left out like
    that, so an operator in one of them is more likely, after which the capture starts again.
    """
    seen = Seen(locations, began_ns)
    groups: Sequence[tuple[set[int] | None, Iterable[int | None]]]
    found = []
    for lines in list(locations.of_code.values()):
        if lines.code in never:
            continue
        if whole_functions:
            paused = _paused(seen, lines, locations, record_ns) if may_pause else []
            found += paused
            quick = not paused and seen.is_quick_function(lines)
            groups = [(None, list(lines))] if quick else []
        else:
            groups = loops(lines.code, [line for line, place in lines.items() if seen.is_quick(place)])
        for offsets, members in groups:
            found.append(seen.loop(lines, offsets, members, record_ns))
    return found


def _paused(seen: Seen, lines: CodeLines, locations: Locations, record_ns: float) -> list[Loop]:
    """The loops of a function around which the trace function can be switched off."""
    code = lines.code
    if code.co_flags & GENERATOR or not seen.is_quick_together(
        [place for place in lines.values() if seen.is_quick(place)]
    ):
        return []
    text = locations.names.text_of(locations.user_files[code.co_filename] or "")
    loops = seen.long_loops(lines, written(code, text))
    other = rewritten(code, text, loops) if loops and functions_of(code) else None
    found = []
    for members in loops.values() if other is not None else ():
        loop = seen.loop(lines, set(), members, record_ns)
        loop.paused = other
        found.append(loop)
    return found


class Seen:
    """Per location in the rehearsal: number of runs, time in ns, whether an operator began there."""

    def __init__(self, locations: Locations, began_ns: list[int]) -> None:
        self.counts: Counter[int] = Counter()
        self.spent: Counter[int] = Counter()
        self.busy: set[int] = set()
        self.begun: Counter[int] = Counter()  # without returns to a line; those are under ``AGAIN``
        self.threads: list[list[int]] = []  # the places of each thread, in order
        for records in locations.all_records:
            times = records.pairs[0 : 2 * MOST_RECORDS : 2]
            begun = records.pairs[1 : 2 * MOST_RECORDS : 2]
            places = [place & ~AGAIN for place in begun]
            self.threads.append(places)
            self.begun.update(begun)
            self.counts.update(places)
            for begin, end, place in zip(times, times[1:], places):
                self.spent[place] += min(end - begin, MOST_NS)
            self.busy.update(places[max(0, bisect_right(times, moment) - 1)] for moment in began_ns if places)

    def is_quick(self, place: int) -> bool:
        """Whether a line ran often and took less than ``QUICK_NS`` each time, so that recording it costs more
        than it takes."""
        often = self.counts[place]
        return often >= OFTEN and place not in self.busy and self.spent[place] < QUICK_NS * often

    def is_quick_function(self, lines: CodeLines) -> bool:
        """``is_quick`` for all lines of a function together. Never for generators: they are suspended."""
        return self.is_quick_together(lines.values()) and not lines.code.co_flags & GENERATOR

    def is_quick_together(self, places: Collection[int]) -> bool:
        """``is_quick`` for the sum of some places."""
        often = sum(self.counts[place] for place in places)
        spent = sum(self.spent[place] for place in places)
        return often >= OFTEN and spent < QUICK_NS * often and self.busy.isdisjoint(places)

    def long_loops(self, lines: CodeLines, written: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
        """The outermost long and quick loops that call no function of the user's: first line -> lines that
        ran. ``written``: first and last line of all loops."""
        found: dict[int, list[int]] = {}
        done = 0
        for first, last in sorted(written):
            ran = [line for line in lines if first <= line <= last]
            places = {lines[line] for line in ran}
            calls = any(self.begun[AGAIN | place] for place in places)
            if first > done and first in ran and not calls and self.is_quick_together(places):
                runs = self._entered(lines[first], places)
                if sum(self.begun[place] for place in places) >= LONG * runs:
                    found[first] = ran
                    done = last
        return found

    def _entered(self, first: int, places: set[int]) -> int:
        """How often control came to ``first`` from outside of ``places``."""
        return sum(
            here == first and before not in places
            for thread in self.threads
            for before, here in zip([-1, *thread], thread)
        )

    def loop(
        self, lines: CodeLines, offsets: set[int] | None, members: Iterable[int | None], record_ns: float
    ) -> Loop:
        """A ``Loop`` with the share of each line; ``record_ns`` is subtracted for each record."""
        net = {}
        for place in (lines[line] for line in sorted(line for line in members if line is not None)):
            spent = self.spent[place]
            net[place] = max(spent - record_ns * self.counts[place], LEAST_SHARE * spent, 1.0)
        whole = sum(net.values())
        shares = {place: part / whole for place, part in net.items()}
        return Loop(lines.code, offsets, shares, {place: self.begun[place] for place in net})


def surprised_by(loops: list[Loop], locations: Locations, began_ns: list[int]) -> set[CodeType]:
    """Code objects with an operator inside a loop that was taken for plain Python."""
    at, codes = {place: loop for loop in loops for place in loop.shares}, set()
    for loop in loops:
        if loop.offsets is None:  # also lines that did not run in the rehearsal
            at.update(dict.fromkeys(locations.of_code[id(loop.code)].values(), loop))
    for records in locations.all_records:
        times, places = records.pairs[0::2], records.pairs[1::2]
        for moment in began_ns:
            here = bisect_right(times, moment) - 1
            if here >= 0 and places[here] & ~AGAIN in at:
                codes.add(at[places[here] & ~AGAIN].code)
    return codes


def share_out(loops: list[Loop], locations: Locations) -> None:
    """Divide each loop's time among its lines by inserting records; those are marked ``AGAIN``."""
    at = {place: loop for loop in loops for place in loop.shares}
    for records in locations.all_records:
        pairs, out, done = records.pairs, records.pairs[:0], 0
        times, places = pairs[0::2], pairs[1::2]
        here_too = {place | again for place in at for again in (0, AGAIN)}
        for here in [here for here, place in enumerate(places[:-1]) if place in here_too]:
            length, place = times[here + 1] - times[here], places[here] & ~AGAIN
            if length < SHORT_NS:
                continue
            out.extend(pairs[2 * done : 2 * here + 2])
            done, shares = here + 1, at[place].shares
            share = shares[place]
            for other in [other for other in shares if other != place]:
                out.extend((times[here] + int(length * share), AGAIN | other))
                share += shares[other]
        out.extend(pairs[2 * done :])
        pairs[:] = out  # in place: a thread that goes on adds to it
