"""NVIDIA's GPUs."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ..kind import Kind


class Device(Kind):
    """CUDA is the script's to initialise: before it has, nothing here is asked."""

    name = "cuda"
    torch_name = "cuda"

    def used(self) -> bool:
        return bool(self.torch.cuda.is_initialized()) and not _is_hip(self.torch)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def facts(self) -> Dict[str, Any]:
        cuda = self.torch.cuda
        properties = cuda.get_device_properties(cuda.current_device())
        return {
            "kind": self.name,
            "name": properties.name,
            "count": cuda.device_count(),
            "capability": [properties.major, properties.minor],
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "bf16": cuda.is_bf16_supported(),
        }

    def identity(self) -> Optional[str]:
        cuda = self.torch.cuda
        uuid = getattr(cuda.get_device_properties(cuda.current_device()), "uuid", None)
        return None if uuid is None else "GPU-%s" % uuid

    def peak_bytes(self) -> int:
        return int(self.torch.cuda.max_memory_allocated())

    def allocated_bytes(self) -> int:
        return int(self.torch.cuda.memory_allocated())

    def memory(self) -> Dict[str, Optional[int]]:
        cuda = self.torch.cuda
        free, total = cuda.mem_get_info()
        return {
            "reserved_bytes": cuda.max_memory_reserved(),
            "free_bytes": free,
            "total_bytes": total,
            "alloc_retries": cuda.memory_stats().get("num_alloc_retries", 0),
        }

    def new_event(self, **options: Any) -> Any:
        return self.torch.cuda.Event(**options)


def _is_hip(torch: Any) -> bool:
    """Whether torch was built for ROCm, where ``torch.cuda`` stands for AMD's GPUs."""
    return getattr(torch.version, "hip", None) is not None
