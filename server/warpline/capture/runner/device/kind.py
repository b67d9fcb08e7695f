"""The interface of a device for the runner. The kinds are in ``kinds``, one module each."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Dict, Optional

from ....wire.memory import free_bytes


class Kind:
    """``name`` is the contract's word for it, ``torch_name`` what torch calls such a device."""

    name = "cpu"
    torch_name = "cpu"
    accelerated = True  # it works beside the host, which has to wait for it

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch

    def used(self) -> bool:
        """Whether the script uses it. Must not initialise the device."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Returns once all work that was queued is done."""
        raise NotImplementedError

    def facts(self) -> Dict[str, Any]:
        """DeviceFacts as a dict."""
        raise NotImplementedError

    def identity(self) -> Optional[str]:
        """Which of the machine's devices it is, the same in every process. None where that is not known."""
        return None

    def peak_bytes(self) -> int:
        """The most memory that was allocated at once so far."""
        raise NotImplementedError

    def allocated_bytes(self) -> int:
        """What is allocated now."""
        raise NotImplementedError

    def memory(self) -> Dict[str, Optional[int]]:
        """Fields of ``wire.facts.Memory`` that not every device has: reserved, free and total bytes."""
        return {}

    def new_event(self, **options: Any) -> Any:
        """An event that can be recorded and, with ``enable_timing``, timed."""
        raise NotImplementedError


class Host(Kind):
    """The processors: what they do is done when the call returns."""

    accelerated = False

    def used(self) -> bool:
        """Whether the script uses this device. Must not initialise it."""
        return True

    def synchronize(self) -> None:
        """Wait until the device has finished what was queued."""
        pass

    def facts(self) -> Dict[str, Any]:
        """The device as ``wire`` describes it: its name, how many there are, what it can do."""
        return {"kind": self.name, "name": _processor(), "count": 1, "bf16": True}

    def peak_bytes(self) -> int:
        """The most memory that was in use at once. Here that of the process."""
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def allocated_bytes(self) -> int:
        """The process's resident bytes; where the system does not say, the most that there were."""
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                import resource

                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, ValueError, ImportError):
            return self.peak_bytes()

    def memory(self) -> Dict[str, Optional[int]]:
        """``free_bytes`` when the process has taken as much as it ever did; nothing where that is unknown."""
        free = free_bytes()
        above = max(0, self.peak_bytes() - self.allocated_bytes())  # given back since, and taken again
        return {} if free is None else {"free_bytes": max(0, free - above)}


def _processor() -> str:
    import platform

    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
