"""Memory over the timing window: the peak, and what each step left behind."""

from __future__ import annotations

from types import ModuleType

from . import machine


class Memory:
    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.before = 0

    def start(self) -> None:
        self.before = self._now()

    def stop(self, steps: int) -> dict[str, float]:
        after, torch = self._now(), self.torch
        found = {
            "peak_bytes": machine.peak_bytes(torch),
            "growth_bytes_per_step": (after - self.before) / max(1, steps),
        }
        if torch.cuda.is_initialized():
            free, total = torch.cuda.mem_get_info()
            found["reserved_bytes"] = torch.cuda.max_memory_reserved()
            found["allocated_bytes"] = after
            found["free_bytes"], found["total_bytes"] = free, total
            stats = torch.cuda.memory_stats()
            found["alloc_retries"] = stats.get("num_alloc_retries", 0)
        return found

    def _now(self) -> int:
        """Bytes allocated on the device; without one, the process's resident bytes."""
        if self.torch.cuda.is_initialized():
            return int(self.torch.cuda.memory_allocated())
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                import resource

                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, ValueError, ImportError):
            return machine.peak_bytes(self.torch)
