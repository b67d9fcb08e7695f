"""Memory over the timing window: the peak, and what each step left behind."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from ....wire.facts import Memory
from . import machine


class MemoryWatch:
    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.before = 0

    def start(self) -> None:
        self.before = self.now()

    def stop(self, steps: int) -> Memory:
        after, torch = self.now(), self.torch
        found = Memory(
            peak_bytes=machine.peak_bytes(torch), growth_bytes_per_step=(after - self.before) / max(1, steps)
        )
        if not torch.cuda.is_initialized():
            return found
        free, total = torch.cuda.mem_get_info()
        return replace(
            found,
            reserved_bytes=torch.cuda.max_memory_reserved(),
            allocated_bytes=after,
            free_bytes=free,
            total_bytes=total,
            alloc_retries=torch.cuda.memory_stats().get("num_alloc_retries", 0),
        )

    def now(self) -> int:
        """Bytes allocated on the device; without one, the process's resident bytes."""
        if self.torch.cuda.is_initialized():
            return int(self.torch.cuda.memory_allocated())
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                import resource

                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, ValueError, ImportError):
            return machine.peak_bytes(self.torch)
