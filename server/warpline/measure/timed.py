"""One process, timed: the only place here that starts one (through :mod:`warpline.capture`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from warpline.model.problem import Problem
from warpline.model.run import Request


@dataclass(frozen=True, slots=True)
class Timed:
    """What one process showed in its timing window, the profiler never on."""

    step_ms: float  # mean of the window: a loader of k workers delivers in bursts, which a median hides
    losses: tuple[float, ...] = ()  # of the first steps
    peak_bytes: float | None = None


Timer = Callable[[Request, Mapping[str, str], float, "threading.Event | None"], Timed]
"""``(request, overlay, limit_s, cancelled) -> Timed``; Problem when it fails, status 130 on cancel."""


def run(
    request: Request, overlay: Mapping[str, str], limit_s: float, cancelled: threading.Event | None
) -> Timed:
    """Run the script with ``overlay`` laid over its sources and time its steps.

    The whole process tree is ended at ``limit_s`` or on cancel.
    """
    from warpline.capture import launch

    timing = launch.time_steps(replace(request, timeout_s=limit_s), overlay, cancelled=cancelled)
    if not timing.steps_ns:
        raise Problem("the script ended before one step could be timed", 1)
    return Timed(
        step_ms=sum(timing.steps_ns) / len(timing.steps_ns) / 1e6,
        losses=tuple(timing.losses),
        peak_bytes=timing.peak_bytes or None,
    )
