"""Intel's GPUs."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ..kind import Kind


class Device(Kind):
    """``torch.xpu``, there from torch 2.4 on. Never seen on real hardware."""

    name = "xpu"
    torch_name = "xpu"

    def used(self) -> bool:
        xpu = getattr(self.torch, "xpu", None)
        return xpu is not None and bool(xpu.is_initialized())

    def synchronize(self) -> None:
        self.torch.xpu.synchronize()

    def facts(self) -> Dict[str, Any]:
        xpu = self.torch.xpu
        properties = xpu.get_device_properties(xpu.current_device())
        asked = getattr(xpu, "is_bf16_supported", None)
        return {
            "kind": self.name,
            "name": properties.name,
            "count": xpu.device_count(),
            "memory_bytes": properties.total_memory,
            "bf16": bool(asked()) if asked is not None else False,
        }

    def peak_bytes(self) -> int:
        return int(self.torch.xpu.max_memory_allocated())

    def allocated_bytes(self) -> int:
        return int(self.torch.xpu.memory_allocated())

    def memory(self) -> Dict[str, Optional[int]]:
        xpu = self.torch.xpu
        found: Dict[str, Optional[int]] = {"reserved_bytes": xpu.max_memory_reserved()}
        if hasattr(xpu, "mem_get_info"):
            try:
                found["free_bytes"], found["total_bytes"] = xpu.mem_get_info()
            except RuntimeError:  # drivers without Sysman do not say
                pass
        return found

    def new_event(self, **options: Any) -> Any:
        return self.torch.xpu.Event(**options)
