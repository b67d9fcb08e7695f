"""One process, timed: the only place here that starts one (through :mod:`warpline.capture`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from warpline.capture.launch import time_steps
from warpline.model.problem import Problem
from warpline.model.run import Request

#: A process costs seconds before its first step, so its window is worth being longer than the half
#: second that the runner would take.
WINDOW_NS = 1_500_000_000
MOST_STEPS = 600


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process showed in its timing window, the profiler never on."""

    step_ms: float  # mean of the window: a loader of k workers delivers in bursts, which a median hides
    losses: tuple[float, ...] = ()  # of the first steps
    peak_bytes: float | None = None


Timer = Callable[[Request, Mapping[str, str], float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


class Processes:
    """A Timer that runs the script. The first window is the runner's choice; those after it have one
    length in steps for all, plain and changed, so that they do the same work.
    """

    def __init__(self) -> None:
        self._steps: int | None = None

    def __call__(
        self,
        request: Request,
        overlay: Mapping[str, str],
        limit_s: float,
        cancelled: threading.Event | None = None,
    ) -> Timed:
        """Time the steps with ``overlay`` laid over the sources; all processes are gone at ``limit_s``."""
        limited = replace(request, timeout_s=limit_s)
        timing = time_steps(limited, overlay, steps=self._steps, cancelled=cancelled)
        durations = timing.steps_ns
        if not durations:
            raise Problem("the script ended before one step could be timed", 1)
        mean_ns = sum(durations) / len(durations)
        if self._steps is None:
            wanted = min(MOST_STEPS, int(WINDOW_NS / max(mean_ns, 1.0)))
            self._steps = max(len(durations), wanted)
        elif len(durations) < self._steps:
            self._steps = len(durations)  # the script has no more
        return Timed(mean_ns / 1e6, timing.losses, timing.peak_bytes or None)
