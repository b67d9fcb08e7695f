"""Processes, timed: the only place here that starts any (through :mod:`warpline.capture`)."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from statistics import median

from warpline.capture import signals, turn
from warpline.capture.again import ROOM_FOR_WARMUP
from warpline.capture.probe import cores
from warpline.capture.process import INTERRUPTED_S
from warpline.capture.timing import time_steps
from warpline.capture.turn import PATIENCE_S
from warpline.measure import epochs
from warpline.measure.background import BackgroundTiming
from warpline.model.problem import Problem
from warpline.wire.control import Windows
from warpline.wire.run import Request
from warpline.wire.timing import Timing

#: A process costs seconds before its first step, so its window is worth being longer than the half
#: second that the runner would take.
WINDOW_NS = 1_500_000_000
#: Epochs no longer than this are waited for: what their beginning costs is seen nowhere else.
EPOCH_NS = 3_000_000_000
MOST_STEPS = 600
#: Slow steps: enough of them to empty the queue that a loader's workers filled before the window
#: (``prefetch_factor`` 2 for each of 8 workers, twice over), as long as that stays below this time.
LEAST_STEPS, SLOW_NS = 32, 4_000_000_000
#: What the runner's warm-up may take of a script's steps (``WARMUP_MOST`` there).
WARMUP = 40
#: Slices of a window, which is longer than that of a process by itself. Each takes some 60 ms of quick steps:
#: a machine that slows down for a second does so for both. None is shorter than ``LEAST_SLICE`` steps, as
#: one more at its beginning does not count.
SLICES, LONGER, LEAST_SLICE = 36, 1.5, 4
#: Where steps have become much longer than they were, or a script ends early, fewer slices have to do.
FEWEST, BUSY_S = 8, 15.0
#: Slices are put together until each has so many times a batch of every loader worker; fewer than
#: ``LEAST_SLICES`` of them have no middle worth the name, and the window's mean is taken.
BURSTS, LEAST_SLICES = 4, 4
#: Added to how long a process waits for its turn.
SLOW_TURN_S = 60.0
#: So many processes import torch side by side at most: each holds half a gigabyte or more.
SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process showed in its timing window, the profiler never on."""

    step_ms: float  # mean of the window: a loader of k workers delivers in bursts, which a median hides
    losses: tuple[float, ...] = ()  # of the first steps
    peak_bytes: float | None = None
    slices: tuple[float, ...] = ()  # mean step of each, in ms; none where a loader's bursts are longer
    epoch_ms: float = (
        0.0  # part of ``step_ms``: what beginnings of epochs add to each step; not in ``slices``
    )
    epochs: int = 0  # beginnings seen


Overlay = Mapping[str, str]
Timer = Callable[[Request, Overlay, float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


class Processes:
    """A Timer that runs the script. The first window is long enough for steps of ``step_ms``, or the
    runner's choice; those after it have one length in steps for all, plain and changed, so that they
    do the same work, and so short that the script need not be run twice for it.
    """

    def __init__(
        self,
        step_ms: float | None = None,
        ending_s: float = INTERRUPTED_S,
        epoch_steps: int | None = None,
    ) -> None:
        """``ending_s``: how long a process may take to end by itself when it is cancelled. ``epoch_steps``:
        so many steps are an epoch; short ones fit into a window twice."""
        self.ending_s = ending_s
        self._patience_s = PATIENCE_S
        self._steps = window_steps(step_ms * 1e6, epoch_steps) if step_ms else None
        self._windows: Windows | None = None  # of a script with so few steps that its warm-up takes them all
        self._timed = step_ms is not None
        self._alone = not turn.possible()  # no two of them may be alive, or the script has too few steps
        self._ahead = True  # some may be started while others are still to be timed
        self._held: deque[BackgroundTiming] = deque()
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
        """Inside the block calls for ``processes`` (overlay, limit in seconds), in this order, find them
        started; with ``slices`` those of :mod:`warpline.measure.slices`.

        Importing torch is most of a short process. All of them do it at once and wait before they go
        on; each is then timed by itself, while no other one does anything. The very first process is
        run alone: the others have to know how many steps there are.
        """
        wanted = processes[: _side_by_side()]
        # All others may take their time twice, importing and being timed, before the last one has its turn.
        self._patience_s = SLOW_TURN_S + 2 * sum(limit_s for _, limit_s in processes)
        # A launcher's ranks would all wait for the one word that there is.
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
                for held in started:  # all at once: each may take seconds to end
                    held.give_up()

    def __call__(
        self, request: Request, overlay: Overlay, limit_s: float, cancelled: threading.Event | None = None
    ) -> Timed:
        """Time the steps with ``overlay`` laid over the sources; all processes are gone at ``limit_s``."""
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
            # The script has no more: it was run a second time. The next ones find room for a warm-up.
            self._steps = max(steps - WARMUP, steps // 2, 1)
            self._windows = again[-1] if again and steps < ROOM_FOR_WARMUP else None
            self._alone = True
        elif self._steps is None:
            self._steps = max(steps, window_steps(found.step_ms * 1e6))
        return found

    @property
    def slice_steps(self) -> int | None:
        """Steps of a slice, if scripts can be timed in slices; not before it is known how long a step is."""
        if self._alone or not self._timed or self._sliced_steps < 2 * LEAST_SLICE:
            return None
        return max(LEAST_SLICE, self._sliced_steps // SLICES)

    @property
    def _sliced_steps(self) -> int:
        return min(MOST_STEPS, int(LONGER * (self._steps or 0)))

    @property
    def slices(self) -> int:
        """How many slices of ``slice_steps`` each of two processes makes in turn."""
        return self._sliced_steps // (self.slice_steps or 1)

    def one_at_a_time(self) -> None:
        """Two of them cannot both be alive: none is started from now on before the last one has ended."""
        self._alone, self._ahead = True, False
        self._end_held()

    def whole_windows(self) -> None:
        """The script has too few steps for slices: each is timed by itself from now on."""
        self._alone = True

    def as_slow_as(self, step_ms: float) -> None:
        """The first window may have been made for a busy moment's steps."""
        self._steps = max(self._steps or 0, window_steps(step_ms * 1e6))

    def hold(
        self,
        request: Request,
        overlay: Overlay,
        limit_s: float,
        cancelled: threading.Event | None,
        slices: bool,
    ) -> BackgroundTiming:
        """A process that waits for its turn, not started yet."""
        steps = self.slice_steps if slices else self._steps
        limited = replace(request, timeout_s=limit_s)
        patience_s, ending_s = self._patience_s, self.ending_s
        return BackgroundTiming(limited, overlay, steps, cancelled, slices, patience_s, ending_s)

    def started(self, overlay: Overlay, *, slices: bool) -> BackgroundTiming | None:
        """The next process that was started with ``overlay``; those before it gave up their turn."""
        if any(held.failed for held in self._held):
            self.one_at_a_time()  # it may want what another one holds: a lock, a port
        if any(held.sliced != slices for held in self._held):
            self._end_held()
        if not any(held.overlay == overlay for held in self._held):
            return None
        while self._held[0].overlay != overlay:
            self._held.popleft()
        return self._held.popleft()

    def _end_held(self) -> None:
        for held in self._held:  # all at once: each may take seconds to end
            held.give_up()
        for held in self._held:
            held.gone()
        self._held.clear()


def _nothing() -> None:
    pass


def _side_by_side() -> int:
    """How many may import torch at once: each keeps a core and a bit busy; two do well on two cores."""
    return min(SIDE_BY_SIDE, max(cores() // 2, min(2, cores())))


def mean(timing: Timing) -> Timed:
    """The mean step, with the start of epochs shared among steps. Raises Problem if no step was timed."""
    if not timing.steps_ns:
        raise Problem("the script ended before one step could be timed", 1)
    usual, epoch_ns = epochs.apart(timing)
    step_ms = (sum(usual.steps_ns) / len(usual.steps_ns) + epoch_ns) / 1e6
    seen = len(timing.epochs)
    return Timed(step_ms, timing.losses, timing.peak_bytes or None, epoch_ms=epoch_ns / 1e6, epochs=seen)


def sliced(timing: Timing, length: int) -> Timed:
    """The timing cut into slices of ``length`` steps, if that makes several: outliers can then be left
    out."""
    times = epochs.apart(timing)[0].steps_ns
    slices = [sum(times[at : at + length]) / length / 1e6 for at in range(0, len(times) - length + 1, length)]
    if len(slices) < LEAST_SLICES:
        return mean(timing)
    whole = mean(timing)
    return replace(whole, step_ms=median(slices) + whole.epoch_ms, slices=tuple(slices))


def window_steps(step_ns: float, epoch_steps: int | None = None) -> int:
    """The number of timed steps for steps of ``step_ns``."""
    if epoch_steps and epoch_steps * step_ns <= EPOCH_NS:
        return min(MOST_STEPS, max(window_steps(step_ns), math.ceil(2 * epoch_steps / LONGER) + 1))
    quick = int(WINDOW_NS / max(step_ns, 1.0))
    slow = min(LEAST_STEPS, int(SLOW_NS / max(step_ns, 1.0)))
    return max(1, min(MOST_STEPS, max(quick, slow)))
