"""Garbage collections during the windows, by ``gc.callbacks``."""

from __future__ import annotations

import gc
from time import time_ns


class Garbage:
    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []  # (start_ns, end_ns)
        self.begun = 0

    def start(self) -> None:
        """Note each collection from here on."""
        self.spans = []
        gc.callbacks.append(self._called)

    def stop(self) -> list[tuple[int, int]]:
        """Begin and end in ns of each collection since ``start``."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
        return self.spans

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.begun = time_ns()
        elif self.begun:
            self.spans.append((self.begun, time_ns()))
            self.begun = 0
