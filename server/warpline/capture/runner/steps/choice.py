"""Chooses the loop with iterations that are the steps, from the durations of all iterations. Pure functions.

It is the outermost loop with enough iterations for all windows, if they are similar and several fit into the
timing window. If a loop does not qualify, the loop inside it that takes most of its time is considered next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....wire.loops import Loop, Turning
from ..windows.lengths import USUAL, USUAL_STEPS, WARMUP_LEAST
from .classes import USUAL_SHARE

#: Fewer steps than this make no timing window of their own: ``timed_steps`` times 3 where they are slow.
SEVERAL = 3
#: Steps that the windows need if steps are fast: warm-up, ten timed ones, and the captured ones.
OFTEN = WARMUP_LEAST + 10 + USUAL_STEPS
#: An outermost loop with a smaller share of the watched time is not considered. Chosen, not fitted.
LEAST_SHARE = 0.1
#: The share of a loop's time from which on the loop inside it is taken to do its work.
MOST_OF_IT = 0.5


@dataclass
class Turned:
    """What was seen of one loop; times in ns. ``within``: how much of its time was inside each other loop, by
    that loop's number; key None: inside no loop."""

    loop: Loop
    durations: list[int] = field(default_factory=list)
    processor_ns: list[int] = field(default_factory=list)  # of each turn; as long as ``durations``
    runs: int = 0  # through a ``for``: its last turn has no end that would be in ``durations``
    total_ns: int = 0
    within: dict[int | None, int] = field(default_factory=dict)
    more: int = 0  # turns after those in ``durations``

    @property
    def typical_ns(self) -> int:
        """The median turn in ns; 0 without one."""
        return sorted(self.durations)[len(self.durations) // 2] if self.durations else 0

    @property
    def alike(self) -> bool:
        """Whether most iterations take about as long as the median iteration.

        Processor time is compared, because on a busy machine an iteration may wait for a time slice. Waits
        for the device or for torch's other threads are included: the waiting thread spins."""
        worked = sorted(self.processor_ns or self.durations)
        typical = worked[len(worked) // 2] if worked else 0
        near = sum(typical <= USUAL * one and one <= USUAL * typical for one in worked)
        return near >= USUAL_SHARE * len(worked)

    def told(self) -> Turning:
        """The loop in the form that is sent to the server."""
        turns = len(self.durations) + self.more + self.runs
        return Turning(self.loop, turns, self.typical_ns, self.total_ns, self.alike)


def steps_well(turned: Turned, window_ns: int) -> bool:
    """Whether iterations of a loop can be steps: enough, similar, and several fit into the timing window."""
    often = len(turned.durations) >= OFTEN
    return often and SEVERAL * turned.typical_ns <= window_ns and turned.alike


def choose(seen: Sequence[Turned], watched_ns: int, window_ns: int) -> tuple[list[int], int | None]:
    """``(path, chosen)``: the numbers of the loops that were considered, outermost first, and of the chosen
    one; None if none qualifies. ``watched_ns``: how long loops were watched."""
    path: list[int] = []
    at: int | None = None
    while True:
        inside = [number for number, one in enumerate(seen) if at in one.within and number not in path]
        best = max(inside, key=lambda number: seen[number].within[at], default=None)
        if best is None or seen[best].within[at] < (LEAST_SHARE * watched_ns if at is None else 1):
            break
        part = at is not None and seen[best].within[at] < MOST_OF_IT * seen[at].total_ns
        if part and _slow(seen, path, window_ns) is not None:
            break
        path.append(best)
        if steps_well(seen[best], window_ns):
            return path, best
        at = best
    return path, _slow(seen, path, window_ns)


def _slow(seen: Sequence[Turned], path: Sequence[int], window_ns: int) -> int | None:
    """The fallback: the innermost loop of ``path`` that takes at least ``window_ns`` and has at least
    ``SEVERAL`` similar iterations; None if there is none."""
    for number in reversed(path):
        one = seen[number]
        if len(one.durations) >= SEVERAL and one.alike and one.total_ns >= window_ns:
            return number
    return None
