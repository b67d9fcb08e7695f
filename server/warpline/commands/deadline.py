"""The end of a command's budget, which holds whatever it is doing."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from warpline.model.problem import Problem

#: Nothing is timed in this last share of a budget: there processes end, and what was found is printed. On a
#: machine with ten times the load that it has cores for, ending eight processes took three seconds.
RESERVED = 0.05
#: A process that is told to end has this share of the budget, between these bounds, before it is killed.
ENDING, LEAST_ENDING_S, MOST_ENDING_S = 0.02, 0.3, 5.0


def end(began: float, budget_s: float) -> float:
    """When timing ends, on the clock of ``time.monotonic()``."""
    return began + (1 - RESERVED) * budget_s


def ending_s(budget_s: float) -> float:
    """How long a process may take to end by itself once the budget is spent."""
    return min(MOST_ENDING_S, max(LEAST_ENDING_S, ENDING * budget_s))


@contextmanager
def enforced(began: float, budget_s: float, interrupted: list[str]) -> Iterator[None]:
    """What is done inside ends ``budget_s`` behind ``began``, or on Ctrl-C; ``interrupted`` then has the word
    for it: "budget" or "interrupted". Waits look at the clock by themselves, so the alarm is a last resort.
    """
    late_s = began + budget_s - time.monotonic()
    alarmed = False

    def alarm(number: int, frame: FrameType | None) -> None:
        nonlocal alarmed
        alarmed = True
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, alarm) if main else None
    if main:
        signal.setitimer(signal.ITIMER_REAL, max(0.01, late_s))
    try:
        yield
    except KeyboardInterrupt:
        interrupted.append("budget" if alarmed else "interrupted")
    except Problem as problem:
        if problem.status != 130:
            raise
        spent = time.monotonic() >= end(began, budget_s)
        interrupted.append("budget" if spent else "interrupted")
    finally:
        if main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
