"""Memory that grows from step to step."""

from __future__ import annotations

from warpline.rulekit.context import Context

#: Growth below this is no leak that a training run would notice (1 MiB a step).
MINIMUM_GROWTH_BYTES = 2**20


def growth_bytes(context: Context) -> float | None:
    """Bytes of device memory that each step takes and keeps; None when there are none or not known."""
    growth = context.profile.facts.memory.get("growth_bytes_per_step")
    if growth is None:
        growth = context.profile.totals.get("kept_bytes")
    return float(growth) if growth is not None and growth >= MINIMUM_GROWTH_BYTES else None
