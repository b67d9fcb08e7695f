"""Processes, timed: the only place here that starts any (through :mod:`warpline.capture`)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from statistics import median

from warpline.capture import room, signals, turn
from warpline.capture.launch import time_steps
from warpline.capture.probe import cores
from warpline.capture.process import INTERRUPTED_S
from warpline.capture.timing import Timing
from warpline.capture.turn import PATIENCE_S
from warpline.measure.held import Held
from warpline.model.problem import Problem
from warpline.wire.run import Request

#: A process costs seconds before its first step, so its window is worth being longer than the half
#: second that the runner would take.
WINDOW_NS = 1_500_000_000
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
#: Where steps have become much longer than they were, or a script ends early, fewer slices have to do; of the
#: steps that it made in slices only a share, as the next warm-up may be longer.
FEWEST, BUSY_S, SCARCE = 8, 15.0, 0.7
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


Overlay = Mapping[str, str]
Timer = Callable[[Request, Overlay, float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


class Processes:
    """A Timer that runs the script. The first window is long enough for steps of ``step_ms``, or the
    runner's choice; those after it have one length in steps for all, plain and changed, so that they
    do the same work, and so short that the script need not be run twice for it.
    """

    def __init__(self, step_ms: float | None = None, ending_s: float = INTERRUPTED_S) -> None:
        """``ending_s``: how long a process may take to end by itself when it is cancelled."""
        self.ending_s = ending_s
        self._patience_s = PATIENCE_S
        self._steps = window_steps(step_ms * 1e6) if step_ms else None
        self._timed = False
        self._alone = not turn.possible()  # no two of them may be alive, or the script has too few steps
        self._most = MOST_STEPS  # in slices; fewer where a script has no more
        self._held: deque[Held] = deque()
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
        started; with ``slices`` calls of ``in_slices``.

        Importing torch is most of a short process. All of them do it at once and wait before they go
        on; each is then timed by itself, while no other one does anything. The very first process is
        run alone: the others have to know how many steps there are.
        """
        wanted = processes[: min(SIDE_BY_SIDE, cores() // 2)]
        # All others may take their time twice, importing and being timed, before the last one has its turn.
        self._patience_s = SLOW_TURN_S + 2 * sum(limit_s for _, limit_s in processes)
        # A launcher's ranks would all wait for the one word that there is.
        if len(wanted) < 2 or request.launcher:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(signals.end_like_interrupt())
            started: list[Held] = []

            def start(several: Sequence[tuple[Overlay, float]]) -> None:
                self._to_start = _nothing
                for overlay, limit_s in several:
                    held = self._hold(request, overlay, limit_s, cancelled, slices)
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
        held = self._started(overlay)
        if held is not None:
            timing = held.result()
        else:
            limited = replace(request, timeout_s=limit_s)
            timing = time_steps(
                limited, overlay, steps=self._steps, cancelled=cancelled, interrupted_s=self.ending_s
            )
        steps = len(timing.steps_ns)
        found = _mean(timing)
        self._timed = True
        if self._steps is None:
            self._steps = max(steps, window_steps(found.step_ms * 1e6))
        elif steps < self._steps:
            # The script has no more: it was run a second time. The next ones find room for a warm-up.
            self._steps = max(steps - WARMUP, steps // 2, 1)
            self._alone = True
        return found

    @property
    def slice_steps(self) -> int | None:
        """Steps of a slice, if scripts can be timed in slices; not before one was timed by itself."""
        if self._alone or not self._timed or self._sliced_steps < 2 * LEAST_SLICE:
            return None
        return max(LEAST_SLICE, self._sliced_steps // SLICES)

    @property
    def _sliced_steps(self) -> int:
        return min(self._most, int(LONGER * (self._steps or 0)))

    def in_slices(
        self,
        request: Request,
        processes: Sequence[tuple[Overlay, float]],
        cancelled: threading.Event | None = None,
    ) -> list[Timed] | None:
        """Time two processes (overlay, limit in seconds) in slices of their windows, in turn, both alive and
        one of them standing still at any time.

        None when that cannot be done: no room for both, or one of them failed (twice, where it made a few
        slices at first). Then both are gone, and this is not tried again: each has to be timed by itself,
        which also tells whose failure it is.
        """
        length = self.slice_steps
        if length is None:
            return None
        count, done = self._sliced_steps // length, 0
        with ExitStack() as stack:
            stack.enter_context(signals.end_like_interrupt())
            both: list[Held] = []
            try:
                for overlay, limit_s in processes:
                    if both and not room.for_another(both[0].group):
                        raise Problem("there is no room for two of them in memory", 1)
                    held = self._started(overlay) or stack.enter_context(
                        self._hold(request, overlay, limit_s, cancelled, slices=True)
                    )
                    both.append(held)
                    held.slice()  # up to the end of its warm-up
                began = time.monotonic()
                while done < count and (done < FEWEST or time.monotonic() < began + BUSY_S):
                    for held in both[:: -1 if done % 2 else 1]:
                        held.slice()
                    done += 1
                found = [held.end() for held in both]
                if any(len(timing.steps_ns) != done * length for timing in found):
                    raise Problem("a window was interrupted", 1)
                # Batches of k workers may come k at a time: only many bursts together are like others.
                steps = max(length, BURSTS * max(timing.workers for timing in found))
                seen = [sliced(timing, -(-steps // length) * length) for timing in found]
                # The first window may have been made for a busy moment's steps.
                slower_ns = max(one.step_ms for one in seen) * 1e6
                self._steps = max(self._steps or 0, window_steps(slower_ns))
                return seen
            except Problem as problem:
                for held in (*both, *self._held):  # all at once: each may take seconds to end
                    held.give_up()
                if problem.status == 130 or (cancelled is not None and cancelled.is_set()):
                    raise
                for held in both:
                    held.gone()
                self._held.clear()
        # A script that ended behind some slices may have no more steps.
        self._most = int(done * length * SCARCE)
        self._alone = done < FEWEST
        return self.in_slices(request, processes, cancelled)

    def _hold(
        self,
        request: Request,
        overlay: Overlay,
        limit_s: float,
        cancelled: threading.Event | None,
        slices: bool,
    ) -> Held:
        steps = self.slice_steps if slices else self._steps
        limited = replace(request, timeout_s=limit_s)
        patience_s, ending_s = self._patience_s, self.ending_s
        return Held(limited, overlay, steps, cancelled, slices, patience_s, ending_s)

    def _started(self, overlay: Overlay) -> Held | None:
        """The next process that was started with ``overlay``; those before it gave up their turn."""
        if not any(held.overlay == overlay for held in self._held):
            return None
        while self._held[0].overlay != overlay:
            self._held.popleft()
        return self._held.popleft()


def _nothing() -> None:
    pass


def _mean(timing: Timing) -> Timed:
    if not timing.steps_ns:
        raise Problem("the script ended before one step could be timed", 1)
    mean_ns = sum(timing.steps_ns) / len(timing.steps_ns)
    return Timed(mean_ns / 1e6, timing.losses, timing.peak_bytes or None)


def sliced(timing: Timing, length: int) -> Timed:
    """In slices of ``length`` steps, if there are a few: those that a busy moment hit do not count then."""
    times = timing.steps_ns
    slices = [sum(times[at : at + length]) / length / 1e6 for at in range(0, len(times) - length + 1, length)]
    if len(slices) < LEAST_SLICES:
        return _mean(timing)
    return replace(_mean(timing), step_ms=median(slices), slices=tuple(slices))


def window_steps(step_ns: float) -> int:
    """How many steps are timed of a script whose steps take ``step_ns``."""
    quick = int(WINDOW_NS / max(step_ns, 1.0))
    slow = min(LEAST_STEPS, int(SLOW_NS / max(step_ns, 1.0)))
    return max(1, min(MOST_STEPS, max(quick, slow)))
