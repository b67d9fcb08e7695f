"""AMD's GPUs: kernels are in torch's traces as NVIDIA's are. Never seen on real hardware."""

from __future__ import annotations

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset({"line costs", "kernels"})
