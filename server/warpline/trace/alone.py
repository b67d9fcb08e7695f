"""The time that a rank's host needs for a step by itself, without its waits for the device.

If a rank's host is ahead of another rank's, its device waits that long in every collective, even if both
ranks are equally fast. Making the other rank faster helps only if this host could continue sooner. So the
host's own time bounds the cost of a late rank.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.trace.columns import RUNTIME, Bools, Ints, Trace
from warpline.trace.names import Names

#: Beginnings of runtime calls in which the host waits until the device has finished the work queued before.
SYNCS = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemset",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
    "cuEventSynchronize",
    "cuMemcpyDtoH",
    "cudaFree",
    "hipStreamSynchronize",
    "hipDeviceSynchronize",
    "hipEventSynchronize",
)
#: Calls with the same beginning that do not wait.
NOT_SYNCS = (
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaMemcpyPeerAsync",
    "cudaFreeAsync",
    "cudaMemcpyToSymbolAsync",
)
_LAUNCH = "LaunchKernel"


def waiting(names: Names) -> Bools:
    """Which of ``names`` are runtime calls that wait for the device."""
    return names.mask(*SYNCS) & ~names.mask(*NOT_SYNCS)


def host_alone_ns(trace: Trace) -> float | None:
    """The host's own time per captured step in ns; None if no runtime call or no step was recorded."""
    calls = trace.host.kind == RUNTIME
    host = trace.host
    return alone_ns(
        trace.names, host.name[calls], host.start_ns[calls], host.end_ns[calls], trace.manifest.captured
    )


def alone_ns(
    names: Names, name: Ints, start_ns: Ints, end_ns: Ints, captured: Sequence[tuple[int, int]]
) -> float | None:
    """The same, from runtime calls as columns; ``name`` indexes ``names``.

    This is a lower bound. The calls of all threads count, since one thread may wait for another one that
    waits for the device. Calls other than :data:`SYNCS` may wait as well (a launch with a full queue, a copy
    to memory that is not pinned). So each call counts as work for at most the time of a fast launch: the
    lower quartile, since most launches wait if the queue is full.
    """
    if not captured or not len(name):
        return None
    begin, end = captured[0][0], captured[-1][1]
    length = np.minimum(end_ns, end) - np.maximum(start_ns, begin)
    syncs: Bools = waiting(names)[name]
    launches = length[names.containing(_LAUNCH)[name] & (length > 0)]
    quick = float(np.quantile(launches, 0.25)) if len(launches) else 0.0
    waits = np.where(syncs, length, length - quick)
    whole = end - begin
    return max(0.0, whole - float(waits[(length > 0) & (waits > 0)].sum())) / len(captured)
