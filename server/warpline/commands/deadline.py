"""The end of a command's budget, which holds whatever it is doing."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from warpline.model.problem import Problem

#: A process that is told to end at the budget's end has this share of it, between these bounds, before it is
#: killed. With what it takes to print, all stays below a tenth.
ENDING, LEAST_ENDING_S, MOST_ENDING_S = 0.03, 0.3, 5.0
#: So much behind the end whatever is still under way is interrupted.
LATE = 0.05


def ending_s(budget_s: float) -> float:
    """How long a process may take to end by itself once the budget is spent."""
    return min(MOST_ENDING_S, max(LEAST_ENDING_S, ENDING * budget_s))


@contextmanager
def enforced(began: float, budget_s: float, interrupted: list[str]) -> Iterator[None]:
    """What is done inside ends ``budget_s`` behind ``began``, or on Ctrl-C; ``interrupted`` then has the word
    for it: "budget" or "interrupted". Waits look at the clock by themselves, so the alarm is a last resort.
    """
    late_s = began + (1 + LATE) * budget_s - time.monotonic()
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
        spent = time.monotonic() >= began + budget_s
        interrupted.append("budget" if spent else "interrupted")
    finally:
        if main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
