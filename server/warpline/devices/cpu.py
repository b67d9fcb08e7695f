"""The CPU: an operator's work is done when its call returns."""

from __future__ import annotations

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset({"line costs", "replacements"})
