"""``--nvtx``: an NVTX range for each step and each user line, for tools that record them (nsys).

With the ``nvtx`` package they are in a domain of their own. ``torch.cuda.nvtx`` only has the default domain;
there they are start/end ranges, which do not interfere with the script's stack of ranges.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ....wire.records import AGAIN

if TYPE_CHECKING:
    from .locations import Locations

DOMAIN = "warpline"


class LineMarks:
    """``step(number)`` at boundaries; ``records(pairs)`` gives an ``add`` that marks what it adds."""

    def __init__(self, torch: ModuleType, locations: Locations) -> None:
        self.locations = locations
        self.begin, self.end = backend(torch)
        self.step_range = None
        self.line_ranges: dict[object, Any] = {}  # one for each thread that is at a line of the user's

    @property
    def possible(self) -> bool:
        """Whether this torch has NVTX."""
        return self.begin is not None

    def step(self, number: int | None) -> None:
        """Step ``number`` begins; None: they are over, and what is open ends."""
        if number is None:
            while self.line_ranges:
                self.end(self.line_ranges.popitem()[1])
        if self.step_range is not None:
            self.end(self.step_range)
        self.step_range = self.begin("step %d" % number) if number is not None else None

    def adding(self, pairs: array[int]) -> Callable[[int], None]:
        """What appends to one thread's pairs, marking each location that goes in."""
        append, ranges, thread = pairs.append, self.line_ranges, object()
        names: dict[int, str] = {}

        def add(value: int) -> None:
            append(value)
            if len(pairs) % 2:  # it was the time
                return
            before = ranges.pop(thread, None)
            if before is not None:
                self.end(before)
            location = value & ~AGAIN
            name = names.get(location)
            if name is None:
                name = names[location] = self._name(location)
            if name:
                ranges[thread] = self.begin(name)

        return add

    def _name(self, location: int) -> str:
        file, line, function = self.locations.table[location]
        if file < 0:
            return ""
        path = list(self.locations.files)[file]
        name = list(self.locations.functions)[function][2]
        return "%s %s:%d" % (name, os.path.basename(path), line)


def backend(torch: ModuleType) -> tuple[Any, Any]:
    """``(begin(name) -> range, end(range))``, or ``(None, None)`` where nothing can write NVTX."""
    try:
        import nvtx

        return (lambda name: nvtx.start_range(message=name, domain=DOMAIN)), nvtx.end_range
    except ImportError:
        pass
    if hasattr(torch._C, "_nvtx"):  # a build for CUDA; it needs no device to write NVTX
        return torch.cuda.nvtx.range_start, torch.cuda.nvtx.range_end
    return None, None
