"""Time that the device spends waiting for launches."""

from __future__ import annotations

from warpline.model.profile import LineCost


def launching_ms(cost: LineCost) -> float:
    """Time in which the device had nothing to do while the host was launching at this line."""
    return max(0.0, cost.idle_ms - cost.loader_ms - cost.sync_ms - cost.gc_ms) if cost.launches else 0.0
