"""Memory over the timing window: the peak, the growth in each step, and the new pages."""

from __future__ import annotations

import ctypes
import mmap
import time
from dataclasses import replace
from types import ModuleType

from ....wire.facts import Memory
from . import kinds

#: Of memory that is touched to see what a new page takes. ``ROUNDS`` times, in all 6 ms: the quickest counts.
TOUCHED, ROUNDS = 1 << 20, 10


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
        pages = self.pages_a_step = (new_pages() - self.pages) / max(1, steps)
        after, device = self.now(), kinds.used(self.torch)
        found = Memory(
            peak_bytes=device.peak_bytes(),
            growth_bytes_per_step=(after - self.before) / max(1, steps),
            **device.memory(),
        )
        if device.accelerated:
            return replace(found, allocated_bytes=after)
        return replace(found, new_pages_per_step=pages, page_ns=page_ns() if pages >= 1 else None)

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


def page_ns() -> float | None:
    """What the system takes for a new page, in ns: the quickest of some first writes to memory, less the
    quickest second one. None where it gives no memory, or says nothing of pages."""
    first, second, pages = list[int](), list[int](), 0
    for _ in range(ROUNDS):
        try:
            memory = mmap.mmap(-1, TOUCHED)
        except OSError:
            return None
        held = ctypes.c_char.from_buffer(memory)
        before = new_pages()
        for times in (first, second):
            began = time.perf_counter_ns()
            ctypes.memset(ctypes.addressof(held), 1, TOUCHED)
            times.append(time.perf_counter_ns() - began)
        pages = max(pages, new_pages() - before)
        del held
        memory.close()
    return max(0.0, (min(first) - min(second)) / pages) if pages else None
