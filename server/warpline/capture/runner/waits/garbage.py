"""Garbage collections during the windows, by ``gc.callbacks``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from time import time_ns

#: The generation that is collected with all younger ones: every object is visited.
FULL = 2
#: Full collections that are noted with their line.
MOST = 1000


class Garbage:
    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []  # (start_ns, end_ns)
        self.full_spans: list[tuple[int, int]] = []  # those of the oldest generation
        self.begun = 0
        #: Of each full one since ``watch``: the number of the step, the file and line that ran (of a call of
        #: the collector its own), and the ns that it took.
        self.full: list[tuple[int, str, int, int]] = []
        self.full_begun = 0

    def watch(self, step: Callable[[], int]) -> None:
        """Note each full collection until ``forget``. ``step``: how many steps have ended."""
        self._step = step
        gc.callbacks.append(self._noted)

    def forget(self) -> None:
        """Note nothing more."""
        if self._noted in gc.callbacks:
            gc.callbacks.remove(self._noted)
        self.stop()

    def _noted(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != FULL or len(self.full) >= MOST:
            return
        if phase == "start":
            self.full_begun = time_ns()
        elif self.full_begun:
            frame, spent = sys._getframe().f_back, time_ns() - self.full_begun
            if frame is not None:  # as Python ends, nothing runs
                self.full.append((self._step(), frame.f_code.co_filename, frame.f_lineno, spent))

    def start(self) -> None:
        """Note each collection from here on."""
        self.spans, self.full_spans = [], []
        gc.callbacks.append(self._called)

    def stop(self) -> list[tuple[int, int]]:
        """Begin and end in ns of each collection since ``start``."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
        return self.spans

    def full_within(self, begin_ns: int, end_ns: int) -> int:
        """What full collections since ``start`` took of this time, in ns."""
        return sum(max(0, min(end, end_ns) - max(begin, begin_ns)) for begin, end in self.full_spans)

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.begun = time_ns()
        elif self.begun:
            self.spans.append((self.begun, time_ns()))
            if info["generation"] == FULL:
                self.full_spans.append(self.spans[-1])
            self.begun = 0
