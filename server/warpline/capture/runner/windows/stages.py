"""The base class of all stages, and the stages before the timing (then: ``timing``, ``capturing``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from time import time_ns
from typing import TYPE_CHECKING

from ....wire.control import Purpose
from ....wire.stages import RESTING, WAITING, WARMUP
from ..device import kinds
from ..waits.queues import Queues
from . import lengths
from .ownprofiler import MOST_STEPS, PATIENCE_STEPS

if TYPE_CHECKING:
    from ..session import Session

#: The last warm-up steps, whose median is the host's time; fewer would not do on a busy machine.
LATEST = 9
SHARED = "another profile measured on this GPU at the same time: times may be too long"


class Stage:
    """One phase of a run. The base class does nothing; it stands for the time before torch is imported and
    after the run is written."""

    #: The stage completes when the script ends, so the script is not asked to end.
    at_end = False
    #: All data of the run exists, so the run succeeds even if the script fails from now on.
    complete = False

    def __init__(self, session: Session) -> None:
        self.session = session

    def after(self, seconds: float, late: Callable[[], object]) -> threading.Timer:
        """Call ``late`` on another thread after ``seconds``, unless the returned timer is cancelled."""
        timer = threading.Timer(seconds, self.session.guarded(late, None))
        timer.daemon = True
        timer.start()
        return timer

    def begin(self) -> None:
        """Called once, when the stage before has ended."""
        pass

    def tick(self) -> None:
        """A step ended."""

    def abandon(self) -> None:
        """End the stage early and discard its data."""

    def cut_short(self) -> None:
        """Write the run as it is. Called where it is ``complete``, on a step's thread."""

    def can_restart(self, better: bool) -> bool:
        """Whether the run may start again because something else marks the steps. ``better``: it is of a
        more reliable kind."""
        return False

    def excuse(self, duration_ns: int, long: bool) -> None:
        """Leave ``duration_ns`` out of the running step. ``long``: the rest of the step is disturbed too."""

    def boundaries_so_far(self) -> int:
        """Number of step boundaries that ``session.boundaries`` does not include yet."""
        return 0

    def ended(self) -> None:
        """The script has ended without an error."""

    def forked(self) -> None:
        """Stop observing: this is a forked child, such as a loader's worker."""


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
        self._wait_for_others()
        session.missed = session.steps.heard_of_anchor() - 1
        session.go(session.after_warmup if session.windows.warmup == 0 else Warmup)

    def _wait_for_others(self) -> None:
        """Wait until no other profile measures on this GPU. Ranks do not: they would wait for each other."""
        session, control, begun = self.session, self.session.control, time_ns()
        if control.purpose is Purpose.PROFILE and control.world == 1:
            alone = session.alone.take(
                kinds.used(session.torch).identity(),
                on_wait=lambda: session.pipe.progress(
                    RESTING, 0, None, "waiting for another profile on this GPU"
                ),
            )
            session.rested_ns += time_ns() - begun
            if session.pipe.stage == RESTING:  # from here on the time limit of the script counts again
                session.pipe.progress(WARMUP, 0, None, "warm-up")
            if not alone and SHARED not in session.notes:
                session.notes.append(SHARED)

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
    """Lasts until step times are stable. Steps under the script's own profiler do not count.

    Each step ends with a synchronization, because a host that runs ahead of the device would make steps look
    short. The time before that synchronization is noted: it is the host's own time without the profiler,
    which no later window shows.
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
        emptying = self.queues.emptying(list(session.observers.batches.iterators))
        settled = lengths.settled(durations, compiled, least_ns, emptying=emptying)
        if settled if wanted is None else done >= wanted:
            session.step_ns = middle(durations[-3:]) or 0
            session.burst = self.queues.burst()
            latest = self.host_ns[1:][-LATEST:]  # the first step loads and compiles what all of them need
            session.host_step_ns = middle(host_ns for host_ns, _ in latest)
            session.host_forward_ns = middle(forward_ns for _, forward_ns in latest)
            self._stay_in_time()
            session.go(session.after_warmup)
        self._begin_step()

    def _stay_in_time(self) -> None:
        """Fewer steps where long ones do not fit into the time limit."""
        session = self.session
        control, windows = session.control, session.windows
        left_ns = session.left_ns()
        alone = control.purpose is Purpose.PROFILE and control.world == 1
        if left_ns is None or not alone or windows.timed is not None:
            return
        device = kinds.used(session.torch).accelerated
        fitting = session.windows = lengths.in_time(windows, left_ns, session.step_ns, device)
        if fitting is not windows:
            blind = "" if fitting.survey else ", what they compute is not recorded"
            session.notes.append(
                "the time limit is short for steps of %.1f s: %s timed and %d captured%s (--timeout)"
                % (session.step_ns / 1e9, fitting.timed, fitting.captured, blind)
            )

    def can_restart(self, better: bool) -> bool:
        return True

    def begin_anew(self) -> None:
        """Forget the steps so far; their times were disturbed."""
        self.stamps = [time_ns()]
        self.queues = Queues()
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
