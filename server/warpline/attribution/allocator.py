"""Calls in which the allocator asks the driver for memory, or gives some back."""

from __future__ import annotations

from warpline.trace.columns import RUNTIME, Bools, Trace

#: How they begin. A step that has settled makes none: torch keeps what was freed and uses it again.
#: ``cuMem…`` are those of expandable segments; Host ones hold pinned memory.
_CALLS = (
    "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister",
    "hipMalloc", "hipExtMalloc", "hipFree", "hipHostMalloc", "hipHostFree",
    "hipHostRegister", "hipHostUnregister",
    "cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
    "cuMemHostAlloc", "cuMemHostRegister",
)  # fmt: skip


def allocator_calls(trace: Trace) -> Bools:
    """Which host events are such calls; of one within another (a driver's in a runtime's) the outer one."""
    host = trace.host
    named = trace.names.mask(*_CALLS)
    found: Bools = named[host.name] & (host.kind == RUNTIME)
    within = (host.parent >= 0) & found[host.parent]
    return found & ~within
