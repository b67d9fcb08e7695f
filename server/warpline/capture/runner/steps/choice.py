"""Chooses the loop with the turns that are the steps. Pure functions of how the loops turned.

The outermost loop that turns often enough for all windows, if its turns are alike and several fit into the
timing window. One that does not is left for the loop inside it that takes most of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....wire.loops import Loop, Turning
from ..windows.lengths import USUAL, USUAL_STEPS, WARMUP_LEAST
from .classes import USUAL_SHARE

#: Fewer steps than this make no timing window of their own: ``timed_steps`` times 3 where they are slow.
SEVERAL = 3
#: What the windows take where steps are quick: warm-up, ten that are timed, and those that are captured.
OFTEN = WARMUP_LEAST + 10 + USUAL_STEPS
#: A loop that takes less of the time is not what the script spends its time on. Chosen, not fitted.
LEAST_SHARE = 0.1
#: Of a loop's time, what the one inside it takes, for that one to do the loop's work: most of it.
MOST_OF_IT = 0.5


@dataclass
class Turned:
    """What was seen of one loop; times in ns. ``within``: of its time, what was inside which other loop's
    turns, by that one's number; None: in no other's."""

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
        """Whether most turns take about as long as the median turn.

        Compared by the thread's processor time: on a busy machine a turn may wait for a time slice. A thread
        that waits for the device or for torch's other threads spins, so that time counts."""
        worked = sorted(self.processor_ns or self.durations)
        typical = worked[len(worked) // 2] if worked else 0
        near = sum(typical <= USUAL * one and one <= USUAL * typical for one in worked)
        return near >= USUAL_SHARE * len(worked)

    def told(self) -> Turning:
        """The loop in the form that is sent to the server."""
        turns = len(self.durations) + self.more + self.runs
        return Turning(self.loop, turns, self.typical_ns, self.total_ns, self.alike)


def steps_well(turned: Turned, window_ns: int) -> bool:
    """Whether a loop's turns can be steps: enough of them, alike, and several in a timing window."""
    often = len(turned.durations) >= OFTEN
    return often and SEVERAL * turned.typical_ns <= window_ns and turned.alike


def choose(seen: Sequence[Turned], watched_ns: int, window_ns: int) -> tuple[list[int], int | None]:
    """The numbers of the loops that were gone through, from the outside in, and which of these is chosen;
    None where none can be. ``watched_ns``: how long they were watched."""
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
    """Where none is as wished for: the innermost of those that take as long as the timing window at least, in
    a few turns that are alike."""
    for number in reversed(path):
        one = seen[number]
        if len(one.durations) >= SEVERAL and one.alike and one.total_ns >= window_ns:
            return number
    return None
