"""How long a rank's host needs for a step by itself: what it waits for the device taken off.

A rank whose host is ahead of another's waits on its device in every collective, by as much as it is ahead,
however equal the two are. It is worth something to make the other one faster only where this host could
go on sooner, so this bounds what a late rank costs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpline.trace.columns import RUNTIME, Bools, Ints, Trace
from warpline.trace.names import Names

#: Runtime calls in which the host waits until the device has done what was asked before.
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
#: These begin with the same letters and do not wait.
NOT_SYNCS = (
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaMemcpyPeerAsync",
    "cudaFreeAsync",
    "cudaMemcpyToSymbolAsync",
)
_LAUNCH = "LaunchKernel"


def host_alone_ns(trace: Trace) -> float | None:
    """Per captured step; None where no runtime call was recorded, or no step."""
    calls = trace.host.kind == RUNTIME
    host = trace.host
    return alone_ns(
        trace.names, host.name[calls], host.start_ns[calls], host.end_ns[calls], trace.manifest.captured
    )


def alone_ns(
    names: Names, name: Ints, start_ns: Ints, end_ns: Ints, captured: Sequence[tuple[int, int]]
) -> float | None:
    """The same of runtime calls as columns; ``name`` indexes ``names``.

    A lower bound. The calls of all threads count, since one thread may wait for another that waits for the
    device. Other calls than :data:`SYNCS` may wait as well (a launch where the queue is full, a copy to
    memory that is not pinned), so of each no more counts as work than a quick launch takes: the lower
    quartile, as most launches wait where the queue is full.
    """
    if not captured or not len(name):
        return None
    begin, end = captured[0][0], captured[-1][1]
    length = np.minimum(end_ns, end) - np.maximum(start_ns, begin)
    syncs: Bools = (names.mask(*SYNCS) & ~names.mask(*NOT_SYNCS))[name]
    launches = length[names.containing(_LAUNCH)[name] & (length > 0)]
    quick = float(np.quantile(launches, 0.25)) if len(launches) else 0.0
    waits = np.where(syncs, length, length - quick)
    whole = end - begin
    return max(0.0, whole - float(waits[(length > 0) & (waits > 0)].sum())) / len(captured)
