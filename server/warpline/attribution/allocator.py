"""Calls in which torch's allocator requests memory from the driver, or frees it."""

from __future__ import annotations

from warpline.trace.columns import RUNTIME, Bools, Trace

#: Beginnings of their names. After the warm-up a step makes none, since torch caches freed memory.
#: ``cuMem…`` are the calls of expandable segments; the Host calls are for pinned memory.
_CALLS = (
    "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister",
    "hipMalloc", "hipExtMalloc", "hipFree", "hipHostMalloc", "hipHostFree",
    "hipHostRegister", "hipHostUnregister",
    "cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
    "cuMemHostAlloc", "cuMemHostRegister",
)  # fmt: skip


def allocator_calls(trace: Trace) -> Bools:
    """Which host events are such calls. Of nested calls (a driver call in a runtime call) only the outer
    one."""
    host = trace.host
    named = trace.names.mask(*_CALLS)
    found: Bools = named[host.name] & (host.kind == RUNTIME)
    within = (host.parent >= 0) & found[host.parent]
    return found & ~within
