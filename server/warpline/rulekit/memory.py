"""Memory that grows from step to step."""

from __future__ import annotations

from warpline.rulekit.context import Context

#: Growth below this is not a leak that a training run would notice (1 MiB a step).
MINIMUM_GROWTH_BYTES = 2**20


def growth_bytes(context: Context) -> float | None:
    """Bytes of device memory that each step takes and keeps, from the allocator's own count over the
    captured steps; None when there are none or not known (a CPU has no such count). What a profile calls
    kept may only not have been freed yet, so it tells where, never whether."""
    if not context.on_gpu:
        return None  # the resident size of a process grows for many reasons
    growth = context.profile.facts.memory.growth_bytes_per_step
    return float(growth) if growth is not None and growth >= MINIMUM_GROWTH_BYTES else None
