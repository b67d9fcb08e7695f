"""Deadlines of running work."""

from __future__ import annotations

import math
import threading
import time


class Ending(threading.Event):
    """An event that is set by ``set()``, if ``other`` is set, or from ``deadline`` (``time.monotonic()``)
    on."""

    def __init__(self, other: threading.Event | None = None, deadline: float = math.inf) -> None:
        super().__init__()
        self._other, self._deadline = other, deadline

    def is_set(self) -> bool:
        """Whether the work has to stop: it was cancelled, or its deadline has passed."""
        if super().is_set() or (self._other is not None and self._other.is_set()):
            return True
        return time.monotonic() >= self._deadline
