"""Which thread woke which: waits for a future, a queue, an event, and who ended them.

All of these wait in ``threading.Condition``. While a thread waits there, it waits for the work of the thread
that then notifies it.
"""

from __future__ import annotations

import threading
from time import time_ns
from typing import Any

from ..patches import Function, Patches

#: Waits that are kept: a capture has a few for each step.
MOST = 100_000
SHORTEST_NS = 20_000  # a shorter wait is no work of another thread's


class Wakes:
    def __init__(self) -> None:
        self.patches = Patches()
        self.waits: list[tuple[int, int, int, int]] = []
        self.notified: dict[int, int] = {}  # id(condition) -> native id of the thread that notified it last

    def start(self) -> None:
        """Note each wait from here on, in all threads."""
        self.waits, self.notified = [], {}
        self.patches.replace(threading.Condition, "wait", self._waiting)
        self.patches.replace(threading.Condition, "notify", self._notifying)

    def stop(self) -> None:
        self.patches.restore()

    def _waiting(self, original: Function) -> Function:
        def wait(condition: Any, *arguments: Any, **named: Any) -> Any:
            begun = time_ns()
            woken = original(condition, *arguments, **named)
            ended = time_ns()
            by = self.notified.get(id(condition))
            if woken and by is not None and ended - begun > SHORTEST_NS and len(self.waits) < MOST:
                self.waits.append((begun, ended, threading.get_native_id(), by))
            return woken

        return wait

    def _notifying(self, original: Function) -> Function:
        def notify(condition: Any, *arguments: Any, **named: Any) -> Any:
            if len(self.notified) >= MOST:
                self.notified.clear()
            self.notified[id(condition)] = threading.get_native_id()
            return original(condition, *arguments, **named)

        return notify
