"""Deadlines of running work."""

from __future__ import annotations

import math
import threading
import time


class Ending(threading.Event):
    """Set when it is set itself, when ``other`` is, or from ``deadline`` on (``time.monotonic()``)."""

    def __init__(self, other: threading.Event | None = None, deadline: float = math.inf) -> None:
        super().__init__()
        self._other, self._deadline = other, deadline

    def is_set(self) -> bool:
        """Whether the work has to stop: it was cancelled, or its deadline is over."""
        if super().is_set() or (self._other is not None and self._other.is_set()):
            return True
        return time.monotonic() >= self._deadline
