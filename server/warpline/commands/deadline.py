"""Ends a command when its budget is over, whatever it is doing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from warpline.capture import tree
from warpline.model.problem import Problem

#: Nothing is timed in this last share of a budget: there processes end, and what was found is printed. On a
#: machine with ten times the load that it has cores for, ending eight processes took three seconds.
RESERVED = 0.05
#: A process that is told to end has this share of the budget, between these bounds, before it is killed.
ENDING, LEAST_ENDING_S, MOST_ENDING_S = 0.02, 0.3, 5.0
#: So far beyond the budget, as a share of it, what still runs is killed, and the command ends itself.
KILLED, LAST = 0.03, 0.08
#: How often processes are looked for then: one may just have been started.
LOOK_S = 0.5


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


@contextmanager
def last_resort(
    began: float,
    budget_s: float,
    *,
    kill: Callable[[], None] = lambda: tree.kill_all_of(os.getpid()),
    leave: Callable[[int], object] = os._exit,
) -> Iterator[None]:
    """The block, and the end of the interpreter behind it, end a tenth of ``budget_s`` late at most.

    A thread of its own sees to that: waits for processes that do not end (on a machine that swaps, or with
    ten times the load that it has cores for) are cut short by killing those, and what does not end then ends
    with this process (exit status 1). Behind the block it acts only where the interpreter itself is ending.
    """
    left = threading.Event()
    status = 1

    def acts() -> bool:
        return not left.is_set() or not threading.main_thread().is_alive()

    def watch() -> None:
        time.sleep(max(0.0, began + (1 + KILLED) * budget_s - time.monotonic()))
        last = began + (1 + LAST) * budget_s
        while acts() and time.monotonic() < last:
            kill()
            time.sleep(max(0.0, min(LOOK_S, last - time.monotonic())))
        if not acts():
            return
        kill()
        if not left.is_set():
            _say(f"the budget of {budget_s:g} s is over, but something is still running: it is stopped now")
        leave(status)

    threading.Thread(target=watch, name="warpline-last-resort", daemon=True).start()
    try:
        yield
        status = 0
    except Problem as problem:
        status = problem.status
        raise
    except KeyboardInterrupt:
        status = 130
        raise
    finally:
        left.set()


def _say(words: str) -> None:
    """On stderr, past its lock, which may be held by what is stuck. Nothing if it is closed."""
    with contextlib.suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"warpline: {words}\n".encode())
