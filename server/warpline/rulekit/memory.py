"""Memory that grows from step to step."""

from __future__ import annotations

from warpline.model.report import Evidence
from warpline.rulekit.context import Context
from warpline.rulekit.message import count, size

#: Growth below this is not a leak that a training run would notice (1 MiB a step).
MINIMUM_GROWTH_BYTES = 2**20


#: A graph that each step keeps is a mistake: it is told where it fills the free memory in so many steps.
LONG_RUN_STEPS = 1_000_000


def growth_bytes(context: Context, *, mistaken: bool = False, graph: bool = False) -> float | None:
    """Bytes of memory that each step takes and keeps; None when there are none or not known. ``mistaken``: as
    soon as a long run notices. ``graph``: the text says that a graph is kept.

    On a device by the allocator's own count over the timed steps. What a profile calls kept may only not have
    been freed yet, so it tells where, never whether. On a CPU the resident size of a process grows for many
    reasons, so both have to say so: the lower one counts. The nodes of a graph are not torch's memory: with
    one that is kept the process's size counts, if any tensor is kept.
    """
    growth = context.profile.facts.memory.growth_bytes_per_step
    if growth is not None and not context.on_gpu:
        kept = sum(cost.kept_bytes for cost in context.profile.lines)
        growth = growth if graph and kept > 0 else min(growth, kept)
    least = free_bytes(context) / LONG_RUN_STEPS if mistaken else 0.0
    least = min(least, MINIMUM_GROWTH_BYTES) or MINIMUM_GROWTH_BYTES
    return float(growth) if growth is not None and growth >= least else None


def free_bytes(context: Context) -> float:
    """Memory that is left beside what the step takes; 0 where that is not known."""
    memory = context.profile.facts.memory
    if not context.on_gpu:
        return float(memory.free_bytes or 0)
    return max(0.0, float(context.device.memory_bytes - (memory.peak_bytes or 0)))


def never_reused(context: Context) -> tuple[str, dict[str, Evidence]]:
    """A sentence, and its numbers, on what ever longer tensors do to torch's allocator, where it ran out of
    memory: it keeps the blocks of all of them."""
    memory = context.profile.facts.memory
    if not memory.alloc_retries or memory.reserved_bytes is None or memory.peak_bytes is None:
        return "", {}
    return (
        " Each length is new, so torch's allocator cannot use a block again: it holds {held} of the device's "
        "memory for {needed} in use, and had to give blocks back {retries} times.",
        {
            "held": size("held by torch's allocator", memory.reserved_bytes),
            "needed": size("in use at most", memory.peak_bytes),
            "retries": count("allocations that failed at first", round(memory.alloc_retries)),
        },
    )
