"""Memory over the timing window: the peak, and the growth in each step."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from ....wire.facts import Memory
from . import kinds


class MemoryWatch:
    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.before = self.pages = 0
        self.pages_a_step: float | None = None  # that were touched for the first time, in the window

    def start(self) -> None:
        """Note the memory in use at the window's start."""
        self.before, self.pages = self.now(), new_pages()

    def stop(self, steps: int) -> Memory:
        """The peak in bytes, and the growth a step over ``steps`` steps."""
        self.pages_a_step = (new_pages() - self.pages) / max(1, steps)
        after, device = self.now(), kinds.used(self.torch)
        found = Memory(
            peak_bytes=device.peak_bytes(),
            growth_bytes_per_step=(after - self.before) / max(1, steps),
            **device.memory(),
        )
        return replace(found, allocated_bytes=after) if device.accelerated else found

    def now(self) -> int:
        """Bytes allocated on the device; without one, the process's resident bytes."""
        return kinds.used(self.torch).allocated_bytes()


def new_pages() -> int:
    """Pages of memory that this process has touched for the first time; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
