"""The stages before steps are timed, and what is common to all. Those after: ``timing``, ``capturing``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time_ns
from typing import TYPE_CHECKING

from ....wire.stages import WAITING, WARMUP
from ..device import kinds
from . import lengths
from .ownprofiler import MOST_STEPS, PATIENCE_STEPS

if TYPE_CHECKING:
    from ..session import Session

#: Steps of the warm-up that tell what the host takes; a few are no middle on a machine that others use.
LATEST = 9


class Stage:
    """What is done until something ends it. This one does nothing: before torch is there, and at the end."""

    #: The script may make its last step in it: then it is not asked to end.
    at_end = False
    #: What a run needs is there: it ends well even where the script does not.
    complete = False

    def __init__(self, session: Session) -> None:
        self.session = session

    def begin(self) -> None:
        """Called once, when the stage before has ended."""
        pass

    def tick(self) -> None:
        """A step ended."""

    def abandon(self) -> None:
        """It ends early, and nothing of it counts."""

    def can_restart(self, better: bool) -> bool:
        """Whether to begin again when another beat is found, which may be of a ``better`` kind."""
        return False

    def excuse(self, duration_ns: int, long: bool) -> None:
        """So much of the step is not the script's; ``long``: and what led to it changes the rest of it."""

    def boundaries_so_far(self) -> int:
        """How many step boundaries passed that ``session.boundaries`` does not count yet."""
        return 0

    def ended(self) -> None:
        """The script came to its end, without an error."""

    def forked(self) -> None:
        """This is a forked child, a loader's worker say: leave it alone."""


class Waiting(Stage):
    """Waits for the first step boundary."""

    watching = False

    def begin(self) -> None:
        session = self.session
        session.pipe.progress(WAITING, 0, None, "waiting for the first step")
        if session.windows.survey_at_once:
            session.steps.on_first = session.guarded(self._survey, None)

    def _survey(self) -> None:
        self.watching = self.session.observers.start_survey()

    def tick(self) -> None:
        session = self.session
        self.abandon()
        session.boundaries = 1
        session.missed = session.steps.heard_of_anchor() - 1
        session.go(session.after_warmup if session.windows.warmup == 0 else Warmup)

    def can_restart(self, better: bool) -> bool:
        return True

    def forked(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        self.session.steps.on_first = None
        if self.watching:
            self.watching = False
            self.session.observers.stop_survey()


class Warmup(Stage):
    """Until step times have settled; steps under the script's own profiler do not count.

    The device is idle at each end: a host that runs ahead of it would make its steps look short. How far it
    runs ahead is noted: that is what the host takes without the profiler, which no later window shows.
    """

    def begin(self) -> None:
        self.in_the_way = 0
        self.begin_anew()

    def tick(self) -> None:
        session, profiler = self.session, self.session.own_profiler
        session.observers.signals.take()
        session.boundaries += 1
        if profiler.in_the_way:
            self.in_the_way += 1
            session.pipe.progress(WAITING, 0, None, "waiting for the script's own profiler to end")
            patient = self.in_the_way < MOST_STEPS and not profiler.waited_for()
            if self.in_the_way > PATIENCE_STEPS and not patient:
                profiler.pause()
            self.begin_anew()
            return
        self.host_ns.append((time_ns() - self.begun, self._until_backward()))
        session.synchronize()
        self.stamps.append(time_ns())
        durations = differences(self.stamps)
        wanted, done = session.windows.warmup, len(durations)
        session.pipe.progress(WARMUP, done, wanted, "warm-up %s" % progress_text(done, wanted))
        compiled = session.observers.compiled_since_last()
        least_ns = lengths.WARMUP_DEVICE_NS if kinds.used(session.torch).accelerated else 0
        if lengths.settled(durations, compiled, least_ns) if wanted is None else done >= wanted:
            session.step_ns = middle(durations[-3:]) or 0
            latest = self.host_ns[-LATEST:]
            session.host_step_ns = middle(host_ns for host_ns, _ in latest)
            session.host_forward_ns = middle(forward_ns for _, forward_ns in latest)
            session.go(session.after_warmup)
        self._begin_step()

    def can_restart(self, better: bool) -> bool:
        return True

    def begin_anew(self) -> None:
        """Forget the steps so far; their times were disturbed."""
        self.stamps = [time_ns()]
        #: Of each step: what the host took for it, and for its forward.
        self.host_ns: list[tuple[int, int | None]] = []
        self.session.synchronize()
        self._begin_step()

    def _begin_step(self) -> None:
        self.session.observers.losses.first_ns = None
        self.begun = time_ns()

    def _until_backward(self) -> int | None:
        first_ns = self.session.observers.losses.first_ns
        return None if first_ns is None else first_ns - self.begun


def middle(durations: Iterable[int | None]) -> int | None:
    """The median of the durations that are known, in their unit. None where none is."""
    known = sorted(duration for duration in durations if duration is not None)
    return known[len(known) // 2] if known else None


def differences(stamps: Sequence[int]) -> tuple[int, ...]:
    """The time between each stamp and the next, in ns."""
    return tuple(after - before for before, after in zip(stamps[:-1], stamps[1:]))  # noqa: RUF007 - Python 3.9 has no pairwise


def progress_text(done: int, wanted: int | None) -> str:
    """``3/10``, or ``3`` where the end is unknown."""
    return "%d" % done if wanted is None else "%d/%d" % (done, wanted)
