"""AMD's GPUs: torch for ROCm calls them ``cuda`` and has the same interface."""

from __future__ import annotations

from typing import Any, Dict

from . import cuda


class Device(cuda.Device):
    """Never seen on real hardware."""

    name = "rocm"

    def used(self) -> bool:
        """Whether torch's ``cuda`` is initialised and is HIP."""
        return bool(self.torch.cuda.is_initialized()) and cuda._is_hip(self.torch)

    def facts(self) -> Dict[str, Any]:
        # "9.4" is a gfx number here, no CUDA compute capability: what is known of 9.0 does not hold.
        return {**super().facts(), "capability": None}
