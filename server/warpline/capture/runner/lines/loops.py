"""Loops of plain Python, recorded where they begin and end only.

A line event costs several times what a short line does, so a loop over numbers would be captured at a
tenth of its speed. The rehearsal, a whole step recorded with everything, tells the lines that run many
times and in which no operator begins. Within a loop of such lines no line event is recorded. The
loop's time is its own; its lines' shares of it are those of the rehearsal.

No operator can land on a wrong line by this: after the capture ``surprised_by`` looks whether one has
begun in such a loop all the same, and then the steps are captured again, with all of its lines.
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

OFTEN = 200  # times a step
QUICK_NS = 3_000  # a line and its record, on average; a slower line gains little
MOST_NS = 10 * QUICK_NS  # counts of each time: beyond it is another process's turn, or no quick line
WORTH = 0.1  # of the step: what the records of such lines must have cost
USUAL_RECORD_NS = 250
LEAST_SHARE = 0.1  # of what was seen at a line stays, whatever its records cost
MOST_RECORDS = 2_000_000  # that are looked at: of a longer step the beginning tells enough
SHORT_NS = 10_000  # a loop that took no longer is not shared out


class Loop:
    """Lines of one code object, with their ``shares`` of its time and their ``times`` a step, by location.

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
    """Whether records of often-run lines cost enough in the rehearsal to find the quick loops among them."""
    counts: Counter[int] = Counter()
    for records in locations.all_records:
        counts.update(records.pairs[1::2])
    return USUAL_RECORD_NS * sum(times for times in counts.values() if times >= OFTEN) > WORTH * step_ns


def find(
    locations: Locations, began_ns: list[int], record_ns: float, whole_functions: bool, never: set[CodeType]
) -> list[Loop]:
    """The Loops in what was recorded.

    ``began_ns``: when operators and launches began. ``record_ns``: what a line record costs.
    ``whole_functions``: line events can be left out for all of a function or not at all.
    ``never``: code objects to leave alone.
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
    """What the rehearsal shows of each location: how often, how long, whether an operator began there."""

    def __init__(self, locations: Locations, began_ns: list[int]) -> None:
        self.counts: Counter[int] = Counter()
        self.spent: Counter[int] = Counter()
        self.busy: set[int] = set()
        self.begun: Counter[int] = Counter()  # without those of coming back to a line
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
        """The same of all lines of a function together. Generators are never quick: they stop in between."""
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
        """A loop to be recorded as a whole, with the share of each of its lines, less ``record_ns`` for each
        record."""
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
        if loop.offsets is None:  # lines that the rehearsal did not come to are left out as well
            at.update(dict.fromkeys(locations.of_code[id(loop.code)].values(), loop))
    for records in locations.all_records:
        times, places = records.pairs[0::2], records.pairs[1::2]
        for moment in began_ns:
            here = bisect_right(times, moment) - 1
            if here >= 0 and places[here] & ~AGAIN in at:
                codes.add(at[places[here] & ~AGAIN].code)
    return codes


def share_out(loops: list[Loop], locations: Locations) -> None:
    """Each loop's time to its lines, as records; only the first is a line that was begun."""
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
