"""Apple's GPUs: the step is timed, but no kernel is in torch's traces, so that no line's time is known.
Never seen on real hardware."""

from __future__ import annotations

from warpline.devices.capability import Capability

CAPABILITIES: frozenset[Capability] = frozenset()
