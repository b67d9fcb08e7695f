"""Apple's GPUs. torch's profiler does not record their kernels, so only the step time is measured."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

from ..kind import Host, Kind


class Device(Kind):
    """``torch.mps``. Never seen on real hardware."""

    name = "mps"
    torch_name = "mps"

    def used(self) -> bool:
        """torch does not say whether MPS was initialised; a script that uses it has memory there."""
        if sys.platform != "darwin" or not self.torch.backends.mps.is_available():
            return False
        return bool(self.torch.mps.current_allocated_memory() > 0)

    def synchronize(self) -> None:
        self.torch.mps.synchronize()

    def facts(self) -> Dict[str, Any]:
        return {**Host(self.torch).facts(), "kind": self.name, "bf16": False}

    def peak_bytes(self) -> int:
        """torch keeps no peak for MPS: what the driver has reserved is at least that."""
        return int(self.torch.mps.driver_allocated_memory())

    def allocated_bytes(self) -> int:
        return int(self.torch.mps.current_allocated_memory())

    def memory(self) -> Dict[str, Optional[int]]:
        return {"reserved_bytes": int(self.torch.mps.driver_allocated_memory())}

    def new_event(self, **options: Any) -> Any:
        return self.torch.mps.event.Event(**options)
