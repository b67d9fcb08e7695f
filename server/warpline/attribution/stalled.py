"""Copies in the host's memory that take far longer than memory needs.

torch divides a large copy among its threads, and the copy is over when the last of them is. Where the cores
are taken, by other processes or by loader workers, a thread waits for one until the scheduler takes it from
the others: 4 to 16 ms in each copy, on 16 cores with three scripts, that takes 0.5 ms otherwise, and 700 ms
where the 96 samples of a batch are joined. The main thread does not queue for a core meanwhile: it waits for
its helpers, and mostly in a loop that looks busy.
"""

from __future__ import annotations

import math

import numpy as np

from warpline.model import costs
from warpline.model.dtypes import ELEMENT_BYTES
from warpline.trace.columns import OP, RUNTIME, Floats, Ints, Signature, Trace
from warpline.wire.sites import Loader, facts_of

#: The least that a copy in memory reaches, in bytes a second, also where that memory is new.
LEAST_RATE = costs.bound("host-copy-rate")
#: The most that joining tensors costs for each of them beside that.
JOINED_NS = costs.bound("host-joined-ns")
#: torch divides the work on so many elements.
DIVIDED = 32_768
_COPY, _JOIN = "aten::copy_", "aten::cat"


def stalled_ns(trace: Trace) -> Floats:
    """Nanoseconds that each host event takes beyond what such a copy needs; 0 for all others.

    Only of the main thread beside a device, and where torch has several threads. What waits for a disk, as
    for a file that is mapped into memory, looks the same.
    """
    host = trace.host
    found = np.zeros(len(host))
    if not trace.on_gpu or (trace.facts.flags.threads or 1) < 2:
        return found
    mine = host.thread == trace.main
    calls = np.sort(host.start_ns[mine & (host.kind == RUNTIME)])
    begin, end = trace.window_ns
    for name, needs in ((_COPY, _copied), (_JOIN, _joined)):
        number = trace.names.index(name) if name in trace.names else -1
        rows = np.flatnonzero(mine & (host.kind == OP) & (host.name == number))
        rows = rows[(host.start_ns[rows] >= begin) & (host.start_ns[rows] < end)]
        own = np.searchsorted(calls, host.start_ns[rows]) == np.searchsorted(calls, host.end_ns[rows])
        rows = rows[own]  # it calls nothing of the device's runtime
        found[rows] = np.maximum(0.0, (host.end_ns - host.start_ns)[rows] - needs(trace, rows))
    return found


def _copied(trace: Trace, rows: Ints) -> Floats:
    """Nanoseconds that each copy needs at most; infinite where it is not divided, or changes the order."""
    needed = np.full(len(trace.signatures), math.inf)
    for number in np.unique(trace.host.signature[rows]).tolist():
        needed[number] = _needed_ns(trace.signatures[number])
    return needed[trace.host.signature[rows]]


def _needed_ns(signature: Signature) -> float:
    if len(signature.shapes) < 2 or len(signature.dtypes) < 2 or len(signature.strides) < 2:
        return math.inf
    (shape, source), (dtype, from_dtype) = signature.shapes[:2], signature.dtypes[:2]
    alike = shape == source and signature.strides[0] == signature.strides[1]
    if not alike or math.prod(shape) < DIVIDED or dtype not in ELEMENT_BYTES:
        return math.inf
    size = max(ELEMENT_BYTES[dtype], ELEMENT_BYTES.get(from_dtype, 0))
    return math.prod(shape) * size / LEAST_RATE * 1e9


def _joined(trace: Trace, rows: Ints) -> Floats:
    """The same for what joins tensors, by the memory that it allocates."""
    memory = trace.memory
    made = (memory.thread == trace.main) & ~memory.on_device & (memory.bytes > 0)
    when, total = memory.time_ns[made], np.concatenate([[0], np.cumsum(memory.bytes[made])])
    first = np.searchsorted(when, trace.host.start_ns[rows])
    size = total[np.searchsorted(when, trace.host.end_ns[rows], "right")] - total[first]
    loaders = [facts_of(Loader, site) for site in trace.facts.sites if site.kind == Loader.KIND]
    usual = max((one.batch_size or 0 for one in loaders), default=0)
    signatures = [trace.signatures[number] for number in trace.host.signature[rows].tolist()]
    parts = np.array([_tensors(one) or usual or math.inf for one in signatures], np.float64)
    long = size >= DIVIDED * np.where(np.isfinite(parts), parts, 0)  # each part may be divided
    return np.where(long, size / LEAST_RATE * 1e9 + parts * JOINED_NS, math.inf)


def _tensors(signature: Signature) -> int:
    """How many tensors of one shape a list has, by their sizes one after the other; 0: they are unknown."""
    sizes = signature.shapes[0] if signature.shapes else ()
    for length in range(1, len(sizes) + 1):
        if len(sizes) % length == 0 and sizes == sizes[:length] * (len(sizes) // length):
            return len(sizes) // length
    return 0
