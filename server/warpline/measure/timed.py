"""One process, timed: the only place here that starts one (through :mod:`warpline.capture`)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from warpline.capture import signals
from warpline.capture.launch import time_steps
from warpline.capture.probe import cores
from warpline.measure.held import Held
from warpline.model.problem import Problem
from warpline.model.run import Request

#: A process costs seconds before its first step, so its window is worth being longer than the half
#: second that the runner would take.
WINDOW_NS = 1_500_000_000
MOST_STEPS = 600
#: Slow steps: enough of them to empty the queue that a loader's workers filled before the window
#: (``prefetch_factor`` 2 for each of 8 workers, twice over), as long as that stays below this time.
LEAST_STEPS, SLOW_NS = 32, 4_000_000_000
#: What the runner's warm-up may take of a script's steps (``WARMUP_MOST`` there).
WARMUP = 40
#: So many processes import torch side by side at most: each holds half a gigabyte or more.
SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process showed in its timing window, the profiler never on."""

    step_ms: float  # mean of the window: a loader of k workers delivers in bursts, which a median hides
    losses: tuple[float, ...] = ()  # of the first steps
    peak_bytes: float | None = None


Overlay = Mapping[str, str]
Timer = Callable[[Request, Overlay, float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


class Processes:
    """A Timer that runs the script. The first window is long enough for steps of ``step_ms``, or the
    runner's choice; those after it have one length in steps for all, plain and changed, so that they
    do the same work, and so short that the script need not be run twice for it.
    """

    def __init__(self, step_ms: float | None = None) -> None:
        self._steps = window_steps(step_ms * 1e6) if step_ms else None
        self._timed = False
        self._held: deque[Held] = deque()
        self._to_start: Callable[[], None] = _nothing

    @contextmanager
    def side_by_side(
        self,
        request: Request,
        processes: Sequence[tuple[Overlay, float]],
        cancelled: threading.Event | None = None,
    ) -> Iterator[None]:
        """Inside the block calls for ``processes`` (overlay, limit in seconds), in this order, find them
        started.

        Importing torch is most of a short process. All of them do it at once and wait before they go
        on; each is then timed by itself, while no other one does anything. The very first process is
        run alone: the others have to know how many steps there are.
        """
        wanted = processes[: min(SIDE_BY_SIDE, cores() // 2)]
        if len(wanted) < 2:
            yield
            return
        with ExitStack() as stack:
            stack.enter_context(signals.end_like_interrupt())
            started: list[Held] = []

            def start(several: Sequence[tuple[Overlay, float]]) -> None:
                self._to_start = _nothing
                for overlay, limit_s in several:
                    limited = replace(request, timeout_s=limit_s)
                    started.append(stack.enter_context(Held(limited, overlay, self._steps, cancelled)))
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
        if any(held.overlay == overlay for held in self._held):
            while self._held[0].overlay != overlay:
                self._held.popleft()  # its turn was given up
            timing = self._held.popleft().result()
        else:
            limited = replace(request, timeout_s=limit_s)
            timing = time_steps(limited, overlay, steps=self._steps, cancelled=cancelled)
        durations = timing.steps_ns
        if not durations:
            raise Problem("the script ended before one step could be timed", 1)
        self._timed = True
        mean_ns = sum(durations) / len(durations)
        if self._steps is None:
            self._steps = max(len(durations), window_steps(mean_ns))
        elif len(durations) < self._steps:
            # The script has no more: it was run a second time. The next ones find room for a warm-up.
            self._steps = max(len(durations) - WARMUP, len(durations) // 2, 1)
        return Timed(mean_ns / 1e6, timing.losses, timing.peak_bytes or None)


def _nothing() -> None:
    pass


def window_steps(step_ns: float) -> int:
    """How many steps are timed of a script whose steps take ``step_ns``."""
    quick = int(WINDOW_NS / max(step_ns, 1.0))
    slow = min(LEAST_STEPS, int(SLOW_NS / max(step_ns, 1.0)))
    return max(1, min(MOST_STEPS, max(quick, slow)))
