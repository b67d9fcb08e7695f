"""The Python tracebacks that autograd stores under anomaly detection: one for each node of its graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING

from ..patches import Patches

if TYPE_CHECKING:
    from ..lines.events import LineEvents

#: What autograd calls for each node, by its name: ``format_stack`` of this module. Whoever turns anomaly
#: detection on has imported it.
MODULE = "torch.fx.traceback"
#: Spans that are kept: a large network's captured steps have some ten thousand.
MOST = 200_000


class Tracebacks:
    """Notes when they are made. Line records do not slow them meanwhile: nearly all of them is Python, which
    runs two to three times slower under a trace function, so they would seem to be more of the step."""

    def __init__(self) -> None:
        self.patches = Patches()
        self.spans: list[tuple[int, int]] = []  # begin and end in ns

    def start(self, lines: LineEvents) -> None:
        """Note each one from here on. ``lines``: pauses meanwhile."""
        self.spans = []
        module = sys.modules.get(MODULE)
        if module is not None:
            self.patches.replace(module, "format_stack", lambda original: self._noted(original, lines))

    def stop(self) -> None:
        self.patches.restore()

    def _noted(self, original: Callable[[], list[str]], lines: LineEvents) -> Callable[[], list[str]]:
        def format_stack() -> list[str]:
            begun = time_ns()
            paused = lines.pause()
            try:
                found = original()
            finally:
                if paused:
                    lines.resume()
            if found and __file__ in found[-1]:
                del found[-1]  # this call
            if len(self.spans) < MOST:
                self.spans.append((begun, time_ns()))
            return found

        return format_stack
