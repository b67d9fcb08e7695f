"""Measures how long threads were ready to run but waited for a processor (Linux)."""

from __future__ import annotations

import os
import threading
from time import perf_counter_ns, process_time_ns

from ....wire.facts import Cores

PATH = "/proc/thread-self/schedstat"
THREADS = "/proc/self/task"


class Queued:
    """Measures the calling thread, from construction to the last ``boundary``."""

    def __init__(self) -> None:
        self.thread = threading.get_native_id()
        self.began_ns = _queued_ns()
        self.found: tuple[int | None] | None = None

    def boundary(self) -> tuple[int | None]:
        """A step has ended: what comes later may belong to none, as the end of the script."""
        here = threading.get_native_id() == self.thread
        now_ns, began_ns = _queued_ns() if here else None, self.began_ns
        self.found = (None if now_ns is None or began_ns is None else now_ns - began_ns,)
        return self.found

    def stop(self) -> int | None:
        """The time in ns until the last boundary, or until now if there was none; None if the system does not
        report it, or if that was told from another thread."""
        return (self.found or self.boundary())[0]


class CoreWatch:
    """Measures all threads of the process, from construction to ``facts``. The calling thread makes the
    steps."""

    def __init__(self) -> None:
        self.main = threading.get_native_id()
        self.queued_ns = _of_threads()
        self.used_ns, self.began_ns = process_time_ns(), perf_counter_ns()

    def facts(self) -> Cores:
        """What was seen until now. A thread that began or ended meanwhile is left out."""
        now = _of_threads()
        waited = {one: now[one] - queued for one, queued in self.queued_ns.items() if one in now}
        own = waited.pop(self.main, None)
        return Cores(
            window_ns=perf_counter_ns() - self.began_ns,
            used_ns=process_time_ns() - self.used_ns,
            queued_ns=own,
            helper_queued_ns=max(waited.values(), default=None),
        )


def _of_threads() -> dict[int, int]:
    """The time that each thread of the process has waited so far, by its native id."""
    try:
        threads = os.listdir(THREADS)
    except OSError:
        return {}
    found = ((one, _queued_ns("%s/%s/schedstat" % (THREADS, one))) for one in threads)
    return {int(one): queued for one, queued in found if queued is not None}


def _queued_ns(path: str | None = None) -> int | None:
    """The second number of ``schedstat`` (Linux, Documentation/scheduler/sched-stats.rst)."""
    try:
        with open(path or PATH, "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
