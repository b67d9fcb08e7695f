"""Garbage collections during the windows, by ``gc.callbacks``."""

from __future__ import annotations

import gc
from time import time_ns

#: The generation that is collected with all younger ones: every object is visited.
FULL = 2


class Garbage:
    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []  # (start_ns, end_ns)
        self.full_ns: list[int] = []  # how long those of the oldest generation took
        self.begun = 0

    def start(self) -> None:
        """Note each collection from here on."""
        self.spans, self.full_ns = [], []
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
            if info["generation"] == FULL:
                self.full_ns.append(self.spans[-1][1] - self.begun)
            self.begun = 0
