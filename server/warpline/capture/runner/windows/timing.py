"""The timing window: steps without the profiler."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING, Any

from ....wire import timing
from ....wire.control import Purpose
from ....wire.stages import TIMING
from .. import children
from ..device import kinds
from ..device.stamps import DeviceStamps, on_device
from ..steps.classes import Class, of_class, usual
from . import lengths
from .sampling import Sampling
from .stages import Stage, differences

if TYPE_CHECKING:
    from ..session import Session

#: Steps that a window has at least.
LEAST = 2


class Timing(Stage):
    """Takes one time stamp per step. The device is idle at both ends of the window."""

    #: The window ends with the first step that ends later. Not where their number is given or compared,
    #: nor where ranks keep in step.
    until = sys.maxsize

    def begin(self) -> None:
        session = self.session
        self.stamps: list[int] = []
        windows = session.windows
        self.fixed = windows.timed
        # If steps are few (``again.shared_out``) and none are sampled, time those that were meant for that.
        profiled = session.control.purpose is Purpose.PROFILE
        if profiled and self.fixed and windows.sampled and not session.samples_lines():
            self.fixed += windows.sampled
        has_device = kinds.used(session.torch).accelerated
        self.window_ns = lengths.WINDOW_DEVICE_NS if has_device else lengths.WINDOW_NS
        wanted = self.fixed or lengths.whole_bursts(
            lengths.timed_steps(session.step_ns, self.window_ns), session.burst, session.step_ns
        )
        session.pipe.progress(TIMING, 0, wanted, "timing %d steps" % wanted)
        session.steps.quiet()
        session.threads.rest(session.steps.moves)
        session.own_profiler.measuring = True
        if session.control.purpose is Purpose.PROFILE:
            session.observers.start_timing()
        self.last = wanted + 1
        control = session.control
        if control.purpose is Purpose.PROFILE and control.world == 1 and not self.fixed:
            self.until = time_ns() + self._most_ns()
        self.classes: list[Class] = []  # of each step
        self.excused: dict[int, int] = {}  # step number -> ns that are not the script's
        self.watch_epochs()
        told = session.control.purpose is Purpose.PROFILE and has_device
        self.device = DeviceStamps(kinds.used(session.torch)) if told else None
        session.steps.on_step = self._quick_tick()
        session.synchronize()
        session.observers.signals.take()
        self.stamps.append(time_ns())
        if self.device is not None:
            self.device.mark()

    def _most_ns(self) -> int:
        """How long the window may last: steps may wait at times for much longer than usual ones take, such as
        where an epoch begins."""
        left_ns = self.session.left_ns()
        return lengths.TIMING_MOST_NS if left_ns is None else min(lengths.TIMING_MOST_NS, left_ns // 2)

    def watch_epochs(self) -> None:
        """Note the steps in which a loader begins an epoch."""
        self.epochs: dict[int, int] = {}  # step number -> batches in the epoch that began in it
        self.session.observers.sites.iterating = self._epoch_begins

    def _epoch_begins(self, loader: Any) -> None:
        at = self.number()
        if at < 0:
            return
        try:
            batches = len(loader)
        except TypeError:  # a stream of samples has no length
            return
        self.epochs[at] = max(batches, self.epochs.get(at, 0))

    def number(self) -> int:
        """The number of the step that runs; -1 outside the window."""
        return len(self.stamps) - 1

    def _quick_tick(self) -> Callable[[], None]:
        stamps, finished = self.stamps, self.session.guarded(self._more, 0)
        stamp, last = stamps.append, self.last
        classify, take = self.classes.append, self.session.observers.signals.take
        mark = self.device.mark if self.device is not None else None
        until = self.until

        def tick() -> None:
            nonlocal last
            now = time_ns()
            stamp(now)
            classify(take())
            if mark is not None:
                mark()
            if len(stamps) == last or (now > until and len(stamps) > LEAST):
                last += finished()

        return tick

    def _more(self) -> int:
        """Number of steps to add because the window was too short. 0: the window has ended."""
        session = self.session
        session.synchronize()
        self.stamps[-1] = time_ns()
        kind = self._kind()
        if not self.fixed:
            own = of_class(differences(self.stamps), self.classes, kind)
            more = lengths.more_timed_steps(len(own), sum(own), self.window_ns)
            elapsed_ns = self.stamps[-1] - self.stamps[0]
            if more and elapsed_ns < lengths.TIMING_MOST_NS and self.stamps[-1] < self.until:
                whole = lengths.whole_bursts(len(own) + more, session.burst, elapsed_ns // len(own))
                return whole - len(own)
        durations = self._durations()
        session.timed = of_class(durations, self.classes, kind)
        session.classes.timed(durations, self.classes, kind)
        session.boundaries += len(durations)
        if session.control.purpose is Purpose.TIME:
            session.finish_timing()
        session.observers.stop_timing(len(durations), self.stamps)
        collected = list(map(session.observers.garbage.full_within, self.stamps, self.stamps[1:]))
        if any(collected):
            session.observers.facts["gc_full_steps_ns"] = of_class(collected, self.classes, kind)
        if session.samples_lines() and not session.windows.sampled_last:
            session.go(Sampling)
        else:
            session.look_closely()
        return 0

    def _kind(self) -> Class | None:
        """The class of steps to measure; None: all steps. All count if step numbers matter: in timing runs,
        which note the steps that begin an epoch, and in generation, which notes first tokens."""
        numbered = (
            self.session.control.purpose is Purpose.TIME or self.session.observers.frameworks.generated_ns
        )
        return None if numbered else usual(self.classes)

    def _durations(self) -> tuple[int, ...]:
        """The duration of each step in ns: by the device's clock if there is a device and no step was
        interrupted, else by the host's."""
        seen = tuple(
            duration - self.excused.get(at, 0) for at, duration in enumerate(differences(self.stamps))
        )
        if self.device is None or self.excused:
            return seen
        return on_device(seen, self.device.durations_ns() or ())

    def excuse(self, duration_ns: int, long: bool) -> None:
        """Leave ``duration_ns`` out of the running step: it was not the script's."""
        at = len(self.stamps) - 1
        self.excused[at] = self.excused.get(at, 0) + duration_ns

    def can_restart(self, better: bool) -> bool:
        return True

    def boundaries_so_far(self) -> int:
        """How many steps have ended in this window."""
        return max(0, len(self.stamps) - 1)

    def abandon(self) -> None:
        """Drop the window; its steps still count as steps of the script."""
        self.session.boundaries += self.boundaries_so_far()
        self.session.observers.stop_timing(max(1, len(self.stamps) - 1))


def figures(session: Session, steps_ns: tuple[int, ...]) -> timing.Timing:
    """The result of a run in which steps are only timed."""
    losses = session.observers.losses
    epochs = session.stage.epochs if isinstance(session.stage, Timing) else {}
    return timing.Timing(
        steps_ns=steps_ns,
        epochs=tuple((at, batches) for at, batches in sorted(epochs.items()) if at < len(steps_ns)),
        losses=tuple(losses.values()),
        loss_not_finite_at=losses.not_finite_at,
        workers=children.living(),
        peak_bytes=kinds.used(session.torch).peak_bytes(),
        step_source=session.steps.chosen or "",
        device=kinds.used(session.torch).name,
    )
