"""Garbage collections during the windows, by ``gc.callbacks``."""

import gc
from time import time_ns


class Garbage:
    def __init__(self):
        self.spans = []  # (start_ns, end_ns)
        self.begun = 0

    def start(self):
        self.spans = []
        gc.callbacks.append(self._called)

    def stop(self):
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)
        return self.spans

    def _called(self, phase, info):
        if phase == "start":
            self.begun = time_ns()
        elif self.begun:
            self.spans.append((self.begun, time_ns()))
            self.begun = 0
