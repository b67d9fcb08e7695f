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

#: Nothing is timed in this last share of a budget: there processes end, and what was found is printed. What
#: the command needed until it could begin to time is set aside as well, up to ``MOST_RESERVED``: ending is of
#: the same kind of work (processes, files, imports), and on a machine that is busy it takes as much longer.
RESERVED, MOST_RESERVED = 0.05, 0.2
#: A process that is told to end has this share of the budget, between these bounds, before it is killed.
ENDING, LEAST_ENDING_S, MOST_ENDING_S = 0.02, 0.3, 5.0
#: So far beyond the budget, as a share of it, what still runs is killed; ``LATEST`` beyond it the command has
#: ended. It begins to end itself before, by this share at least, and by half of what it took to begin.
KILLED, LATEST, LEAVING = 0.03, 0.1, 0.02
#: How often processes are looked for then: one may just have been started.
LOOK_S = 0.5


class Deadline:
    """The end of a command that began at ``began`` (on the clock of ``time.monotonic()``)."""

    def __init__(self, began: float, budget_s: float) -> None:
        self.began, self.budget_s = began, budget_s
        self.reserved_s = RESERVED * budget_s

    def timing_begins(self) -> None:
        """All that comes before the first process is done: sets the time for the end aside."""
        took_s = time.monotonic() - self.began
        self.reserved_s = min(MOST_RESERVED * self.budget_s, max(self.reserved_s, took_s))

    @property
    def end(self) -> float:
        """When timing ends."""
        return self.began + self.budget_s - self.reserved_s

    @property
    def ending_s(self) -> float:
        """How long a process may take to end by itself once the budget is spent."""
        return min(MOST_ENDING_S, max(LEAST_ENDING_S, ENDING * self.budget_s))

    @property
    def killing(self) -> tuple[float, float]:
        """``(when what still runs is killed, when the command ends itself)``."""
        leaving_s = min(LATEST * self.budget_s, max(LEAVING * self.budget_s, self.reserved_s / 2))
        last = self.began + (1 + LATEST) * self.budget_s - leaving_s
        return min(self.began + (1 + KILLED) * self.budget_s, last), last

    @contextmanager
    def enforced(self, interrupted: list[str]) -> Iterator[None]:
        """What is done inside ends with the budget, or on Ctrl-C; ``interrupted`` then has the word for it:
        "budget" or "interrupted". Waits look at the clock by themselves, so the alarm is a last resort.
        """
        late_s = self.began + self.budget_s - time.monotonic()
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
            interrupted.append("budget" if time.monotonic() >= self.end else "interrupted")
        finally:
            if main:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    @contextmanager
    def last_resort(
        self,
        *,
        kill: Callable[[], None] = lambda: tree.kill_all_of(os.getpid()),
        leave: Callable[[int], object] = os._exit,
    ) -> Iterator[None]:
        """The block, and the end of the interpreter behind it, end a tenth of the budget late at most.

        A thread of its own sees to that: waits for processes that do not end (on a machine that swaps, or
        with ten times the load that it has cores for) are cut short by killing those, and what does not end
        then ends with this process (exit status 1). Behind the block it acts only where the interpreter
        itself is ending.
        """
        left = threading.Event()
        status = 1

        def acts() -> bool:
            return not left.is_set() or not threading.main_thread().is_alive()

        def watch() -> None:
            while time.monotonic() < self.killing[0]:  # which moves when ``timing_begins``
                time.sleep(max(0.0, min(LOOK_S, self.killing[0] - time.monotonic())))
            last = self.killing[1]
            while acts() and time.monotonic() < last:
                kill()
                time.sleep(max(0.0, min(LOOK_S, last - time.monotonic())))
            if not acts():
                return
            kill()
            if not left.is_set():
                over = f"the budget of {self.budget_s:g} s is over, but something is still running"
                _say(f"{over}: it is stopped now")
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
