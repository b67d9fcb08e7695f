"""The processors of the host: operators are the work, and are done when they return."""

from __future__ import annotations

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset({"line costs", "replacements"})
