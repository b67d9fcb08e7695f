"""Starts and times processes. No other module of this package starts any (through
:mod:`warpline.capture`)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from statistics import median

from warpline.capture import room, signals, turn
from warpline.capture.again import ROOM_FOR_WARMUP
from warpline.capture.process import INTERRUPTED_S
from warpline.capture.timing import time_steps
from warpline.capture.turn import PATIENCE_S
from warpline.measure import epochs
from warpline.measure.background import BackgroundTiming
from warpline.model import units
from warpline.model.problem import Problem
from warpline.model.profile import Profile
from warpline.wire.control import Windows
from warpline.wire.processors import cores
from warpline.wire.run import Request
from warpline.wire.sites import longest_epoch
from warpline.wire.timing import Timing

#: Length of a timing window. A process takes seconds until its first step, so the window is longer than the
#: runner's usual half second.
WINDOW_NS = 1_500_000_000
#: If an epoch takes at most this long, the window has whole epochs, so that the cost of their start is
#: measured: two in the plain process and two in the changed one are 24 s of the minute that a fix may take.
EPOCH_NS = 6_000_000_000
#: Of an epoch of up to this length, a second at its start is 1 % or more, the least gain that is shown.
NOTABLE_EPOCH_NS = 100_000_000_000
MOST_STEPS = 600
#: Slow steps: a window has at least this many, as long as they take no longer than ``SLOW_NS``. It then
#: empties the queue that a loader's workers filled before it (``prefetch_factor`` 2 for each of 8 workers,
#: twice).
LEAST_STEPS, SLOW_NS = 32, 4_000_000_000
#: Most steps that the runner's warm-up takes (``WARMUP_MOST`` in the runner).
WARMUP = 40
#: Slices of a window, which is ``LONGER`` times that of a process timed alone. A slice of fast steps takes
#: about 60 ms, so a machine that slows down for a second affects both processes. A slice has at least
#: ``LEAST_SLICE`` steps, and one more at its beginning that does not count.
SLICES, LONGER, LEAST_SLICE = 36, 1.5, 4
#: Fewest slices, if steps have become much longer or a script ends early.
FEWEST, BUSY_S = 8, 15.0
#: Slices are joined until each has this many batches of every loader worker. With fewer than ``LEAST_SLICES``
#: slices a median is useless, and the window's mean is taken.
BURSTS, LEAST_SLICES = 4, 4
#: Added to the limit for a process's wait for its turn.
SLOW_TURN_S = 60.0
#: Most processes that import torch in parallel: each uses half a gigabyte or more.
SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Timed:
    """The result of one process: its timing window, without the profiler."""

    step_ms: float  # mean of the window: a loader delivers in bursts, which a median would hide
    losses: tuple[float, ...] = ()  # of the first steps
    peak_bytes: float | None = None
    slices: tuple[float, ...] = ()  # mean step of each slice in ms; () if a loader's bursts are longer
    epoch_ms: float = 0.0  # part of ``step_ms``: time per step for starting epochs; not in ``slices``
    epochs: int = 0  # epochs that began in the window


Overlay = Mapping[str, str]
Timer = Callable[[Request, Overlay, float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


class Processes:
    """A Timer that runs the script. The length of the first window is chosen for steps of ``step_ms``, or by
    the runner. All later windows, plain and changed, have the same number of steps, so that they do the same
    work. It is small enough that the script need not run twice.
    """

    def __init__(
        self,
        step_ms: float | None = None,
        ending_s: float = INTERRUPTED_S,
        epoch_steps: int | None = None,
        most: int = SIDE_BY_SIDE,
    ) -> None:
        """``ending_s``: how long a cancelled process may take to end by itself. ``epoch_steps``: steps of an
        epoch; a window has two short epochs. ``most``: processes that fit into the device's memory."""
        self.ending_s = ending_s
        self._patience_s = PATIENCE_S
        self._steps = window_steps(step_ms * 1e6, epoch_steps) if step_ms else None
        self._next_steps = 0  # of the next window, at least
        self._windows: Windows | None = None  # for a script with no more steps than the warm-up takes
        self._step_s = (step_ms or 0.0) / 1000
        self._timed = step_ms is not None
        self._alone = not turn.possible()  # no two may be alive at once, or the script has too few steps
        self._ahead = True  # processes may be started before the earlier ones were timed
        self._held: list[BackgroundTiming] = []
        self.bytes = 0  # private host memory of a process at its first slice; 0: not seen yet
        self._most = most
        self._to_start: Callable[[], None] = _nothing

    @contextmanager
    def side_by_side(
        self,
        request: Request,
        processes: Sequence[tuple[Overlay, float]],
        cancelled: threading.Event | None = None,
        *,
        slices: bool = False,
    ) -> Iterator[None]:
        """A block in which ``processes`` (overlay, limit in seconds) are already started when they are called
        for, in this order; with ``slices``, for :mod:`warpline.measure.slices`.

        Importing torch takes most of a short process's time. All processes do it in parallel and then wait.
        Each is timed while the others are paused. The very first process runs alone, since the others need
        the number of steps.
        """
        if self._next_steps:
            self._steps = max(self._steps or 0, self._next_steps)
        wanted = processes[: _side_by_side()]
        # Before the last one has its turn, each other one may use its limit twice: to import and to be timed.
        self._patience_s = SLOW_TURN_S + 2 * sum(limit_s for _, limit_s in processes)
        # All ranks of a launcher would wait for the same turn.
        if len(wanted) < 2 or request.launcher or not self._ahead:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(signals.end_like_interrupt())
            started: list[BackgroundTiming] = []

            def start(several: Sequence[tuple[Overlay, float]]) -> None:
                self._to_start = _nothing
                for overlay, limit_s in several:
                    held = self.hold(request, overlay, limit_s, cancelled, slices)
                    started.append(stack.enter_context(held))
                self._held.extend(started)
                for held in started:
                    held.ready()

            try:
                if self._timed:
                    start(wanted)
                else:
                    self._to_start = lambda: start(wanted[1:])
                yield
            finally:
                self._held.clear()
                self._to_start = _nothing
                for held in started:  # in parallel: each may take seconds to end
                    held.give_up()

    def __call__(
        self, request: Request, overlay: Overlay, limit_s: float, cancelled: threading.Event | None = None
    ) -> Timed:
        """Time the steps with the texts of ``overlay``; all processes have ended after ``limit_s``
        seconds."""
        if self._timed:
            self._to_start()
        again: list[Windows] = []
        held = self.started(overlay, slices=False)
        if held is not None:
            timing = held.result()
        else:
            limited = replace(request, timeout_s=limit_s)
            timing = time_steps(
                limited,
                overlay,
                steps=self._steps,
                windows=self._windows,
                on_again=again.append,
                cancelled=cancelled,
                interrupted_s=self.ending_s,
            )
        steps = len(timing.steps_ns)
        found = mean(timing)
        self._timed = True
        if again or steps < (self._steps or 0):
            # The script has no more steps, so it was run twice. Later windows leave steps for the warm-up.
            self._steps = max(steps - WARMUP, steps // 2, 1)
            self._windows = again[-1] if again and steps < ROOM_FOR_WARMUP else None
            self._alone = True
        elif self._steps is None:
            self._steps = max(steps, window_steps(found.step_ms * 1e6))
        return found

    @property
    def slice_steps(self) -> int | None:
        """Steps of a slice; None if scripts cannot be timed in slices, or the step time is still unknown."""
        if self._alone or not self._timed or self._sliced_steps < 2 * LEAST_SLICE:
            return None
        return max(LEAST_SLICE, self._sliced_steps // SLICES)

    @property
    def _sliced_steps(self) -> int:
        return min(MOST_STEPS, int(LONGER * (self._steps or 0)))

    @property
    def slices(self) -> int:
        """Number of slices of ``slice_steps`` steps that each of two processes runs."""
        return self._sliced_steps // (self.slice_steps or 1)

    @property
    def slices_s(self) -> float:
        """Seconds that the slices of a pair take if both have the steps of the profile, the step at the
        beginning of each slice included; 0 if that is unknown."""
        return 2 * self.slices * ((self.slice_steps or 0) + 1) * self._step_s

    def one_at_a_time(self) -> None:
        """Start each process only after the previous one has ended, from now on: two cannot be alive at
        once."""
        self._alone, self._ahead = True, False
        self._end_held()

    def whole_windows(self) -> None:
        """Time each process alone from now on: the script has too few steps for slices."""
        self._alone = True

    def as_slow_as(self, step_ms: float) -> None:
        """Adjust the window to steps of ``step_ms``: the first one may have been chosen at a busy moment. It
        stays as it is for processes that are already started."""
        self._next_steps = max(self._next_steps, window_steps(step_ms * 1e6))

    def hold(
        self,
        request: Request,
        overlay: Overlay,
        limit_s: float,
        cancelled: threading.Event | None,
        slices: bool,
    ) -> BackgroundTiming:
        """A process that will wait for its turn; it is not started yet."""
        steps = self.slice_steps if slices else self._steps
        limited = replace(request, timeout_s=limit_s)
        patience_s, ending_s = self._patience_s, self.ending_s
        return BackgroundTiming(limited, overlay, steps, cancelled, slices, patience_s, ending_s)

    def started(self, overlay: Overlay, *, slices: bool) -> BackgroundTiming | None:
        """The next process that was started with ``overlay``, if there is one."""
        if any(held.failed for held in self._held):
            self.one_at_a_time()  # it may need a resource that another one holds: a lock, a port
        if any(held.sliced != slices for held in self._held):
            self._end_held()
        found = next((held for held in self._held if held.overlay == overlay), None)
        if found is not None:
            self._held.remove(found)
        return found

    @property
    def warm_together(self) -> int:
        """How many may run up to their first slice in parallel: imports of the script, its data, its model.
        Each has its own threads and loader workers, so it gets four cores."""
        return min(SIDE_BY_SIDE, cores() // 4, self._most)

    def ahead(self, count: int) -> list[BackgroundTiming]:
        """Up to ``count`` processes that were started for later rounds, in their order."""
        return [held for held in self._held if held.sliced and not held.warm][: max(0, count)]

    def drop(self, held: BackgroundTiming) -> None:
        """End a process that was started for a later round: that round starts another one."""
        held.give_up()
        self._held.remove(held)

    def _end_held(self) -> None:
        for held in self._held:  # in parallel: each may take seconds to end
            held.give_up()
        for held in self._held:
            held.gone()
        self._held.clear()


def processes(profile: Profile, ending_s: float = INTERRUPTED_S) -> Processes:
    """For the script of ``profile``."""
    peak, whole = profile.facts.memory.peak_bytes, profile.manifest.device.memory_bytes
    most = int(whole / (room.SPARE * peak)) if peak and whole else SIDE_BY_SIDE
    return Processes(profile.steps.step_ms, ending_s, longest_epoch(profile.facts.sites), max(1, most))


def epoch_note(profile: Profile) -> tuple[str, ...]:
    """A note that no window has a whole epoch, where the time between epochs may matter."""
    epoch_ns = (longest_epoch(profile.facts.sites) or 0) * profile.steps.step_ms * 1e6
    if not EPOCH_NS < epoch_ns <= NOTABLE_EPOCH_NS:
        return ()
    length = units.seconds(epoch_ns / 1e9)
    return (f"an epoch takes about {length}: what happens between two epochs may be missing in these gains",)


def _nothing() -> None:
    pass


def _side_by_side() -> int:
    """How many may import torch in parallel. Each uses a little more than one core; two are fine on two
    cores."""
    return min(SIDE_BY_SIDE, max(cores() // 2, min(2, cores())))


def mean(timing: Timing) -> Timed:
    """The mean step, with the cost of starting epochs divided among the steps. Raises Problem if no step was
    timed."""
    if not timing.steps_ns:
        raise Problem("the script ended before one step could be timed", 1)
    usual, epoch_ns = epochs.apart(timing)
    step_ms = (sum(usual.steps_ns) / len(usual.steps_ns) + epoch_ns) / 1e6
    seen = len(timing.epochs)
    return Timed(step_ms, timing.losses, timing.peak_bytes or None, epoch_ms=epoch_ns / 1e6, epochs=seen)


def sliced(timing: Timing, length: int) -> Timed:
    """The timing in slices of ``length`` steps, if there are several, so that outliers can be ignored."""
    times = epochs.apart(timing)[0].steps_ns
    slices = [sum(times[at : at + length]) / length / 1e6 for at in range(0, len(times) - length + 1, length)]
    if len(slices) < LEAST_SLICES:
        return mean(timing)
    whole = mean(timing)
    return replace(whole, step_ms=median(slices) + whole.epoch_ms, slices=tuple(slices))


def window_steps(step_ns: float, epoch_steps: int | None = None) -> int:
    """Number of steps in a timing window, for steps of ``step_ns``."""
    if epoch_steps and epoch_steps * step_ns <= EPOCH_NS:
        return min(MOST_STEPS, max(window_steps(step_ns), math.ceil(2 * epoch_steps / LONGER) + 1))
    quick = int(WINDOW_NS / max(step_ns, 1.0))
    slow = min(LEAST_STEPS, int(SLOW_NS / max(step_ns, 1.0)))
    return max(1, min(MOST_STEPS, max(quick, slow)))
