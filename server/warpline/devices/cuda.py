"""NVIDIA's GPUs: recorded on H200s."""

from __future__ import annotations

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset(
    {"line costs", "kernels", "tensor cores", "cudnn", "occupancy", "replacements", "nsight"}
)
