"""Measures how long a thread was ready to run but waited for a processor (Linux)."""

from __future__ import annotations

import threading

PATH = "/proc/thread-self/schedstat"


class Queued:
    """Measures the calling thread, from construction to ``stop``."""

    def __init__(self) -> None:
        self.thread = threading.get_native_id()
        self.began_ns = _queued_ns()

    def stop(self) -> int | None:
        """The time in ns; None if the system does not report it, or if called from another thread."""
        if self.began_ns is None or threading.get_native_id() != self.thread:
            return None
        now_ns = _queued_ns()
        return None if now_ns is None else now_ns - self.began_ns


def _queued_ns() -> int | None:
    """The second number of ``schedstat`` (Linux, Documentation/scheduler/sched-stats.rst)."""
    try:
        with open(PATH, "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
