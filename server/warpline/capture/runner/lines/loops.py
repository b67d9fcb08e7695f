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
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING

from ....wire.records import AGAIN
from .flow import loops
from .onlyline import GENERATOR

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


class Loop:
    """A quick loop: lines of one code object, by location, with their ``shares`` of the loop's time and the
    number of ``times`` that each began in the rehearsal.

    ``offsets``: where line events are left out; None: in the whole function.
    """

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
    locations: Locations, began_ns: list[int], record_ns: float, whole_functions: bool, never: set[CodeType]
) -> list[Loop]:
    """The quick loops in the recording.

    ``began_ns``: when operators and launches began. ``record_ns``: the cost of a line record.
    ``whole_functions``: line events can only be left out for whole functions. ``never``: code objects to
    skip.
    """
    seen = Seen(locations, began_ns)
    groups: Sequence[tuple[set[int] | None, Iterable[int | None]]]
    found = []
    for lines in list(locations.of_code.values()):
        if lines.code in never:
            continue
        if whole_functions:
            groups = [(None, list(lines))] if seen.is_quick_function(lines) else []
        else:
            groups = loops(lines.code, [line for line, place in lines.items() if seen.is_quick(place)])
        for offsets, members in groups:
            found.append(seen.loop(lines, offsets, members, record_ns))
    return found


class Seen:
    """Per location in the rehearsal: number of runs, time in ns, whether an operator began there."""

    def __init__(self, locations: Locations, began_ns: list[int]) -> None:
        self.counts: Counter[int] = Counter()
        self.spent: Counter[int] = Counter()
        self.busy: set[int] = set()
        self.begun: Counter[int] = Counter()  # without returns to a line
        for records in locations.all_records:
            times = records.pairs[0 : 2 * MOST_RECORDS : 2]
            begun = records.pairs[1 : 2 * MOST_RECORDS : 2]
            places = [place & ~AGAIN for place in begun]
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
        often = sum(self.counts[place] for place in lines.values())
        spent = sum(self.spent[place] for place in lines.values())
        return (
            often >= OFTEN
            and spent < QUICK_NS * often
            and self.busy.isdisjoint(lines.values())
            and not lines.code.co_flags & GENERATOR
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
        records.pairs = out
