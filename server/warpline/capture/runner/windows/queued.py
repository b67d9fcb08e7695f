"""Measures how long a thread was ready to run but waited for a processor (Linux)."""

from __future__ import annotations

import threading

PATH = "/proc/thread-self/schedstat"


class Queued:
    """Measures the calling thread, from construction to ``stop``."""

    def __init__(self) -> None:
        self.thread = threading.get_native_id()
        self.began_ns = _queued_ns()
        self.found: tuple[int | None] | None = None

    def stop(self) -> int | None:
        """The time in ns until this was first called; None if the system does not report it, or if called
        from another thread. It is called as the last step ends: to stop the profiler takes long."""
        if self.found is None:
            here = threading.get_native_id() == self.thread
            now_ns, began_ns = _queued_ns() if here else None, self.began_ns
            self.found = (None if now_ns is None or began_ns is None else now_ns - began_ns,)
        return self.found[0]


def _queued_ns() -> int | None:
    """The second number of ``schedstat`` (Linux, Documentation/scheduler/sched-stats.rst)."""
    try:
        with open(PATH, "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
