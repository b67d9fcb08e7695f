"""Calls in which the host waits for the device, made by the script or by the runner."""

from __future__ import annotations

import numpy as np

from warpline.trace.alone import waiting
from warpline.trace.columns import COPY, RUNTIME, Bools, Ints, Trace, take

#: The runtime calls of torch.cuda.synchronize().
WHOLE_DEVICE = ("cudaDeviceSynchronize", "hipDeviceSynchronize")

#: Copies from or to memory that the device cannot read or write by itself, as CUPTI names them.
PAGEABLE = ("Memcpy HtoD (Pageable", "Memcpy DtoH (Device -> Pageable")


def sync_calls(trace: Trace) -> Bools:
    """Which host events wait for the device."""
    found: Bools = waiting(trace.names)[trace.host.name] & (trace.host.kind == RUNTIME)
    return found


def blocking_copies(trace: Trace) -> Bools:
    """Which kernels are copies whose call returned only after the copy had ended.

    For pageable memory it is enough that the call lasted for most of the copy: it returns once the last piece
    is in the driver's own memory, a few microseconds before the copy ends (CUDA Driver API, "API
    synchronization behavior").
    """
    host, kernels = trace.host, trace.kernels
    found: Bools = (kernels.kind == COPY) & (kernels.launch >= 0)
    returned = take(host.end_ns, kernels.launch)
    most = kernels.start_ns + (kernels.end_ns - kernels.start_ns) // 2
    pageable = trace.names.mask(*PAGEABLE)[kernels.name]
    return found & (returned >= np.where(pageable, most, kernels.end_ns))


def waiting_reads(trace: Trace) -> Bools:
    """Which host events queue a copy into pageable memory and wait for it and all that was queued before. The
    synchronization that torch calls next finds nothing left to wait for."""
    reads = blocking_copies(trace) & trace.names.mask(PAGEABLE[1])[trace.kernels.name]
    found = np.zeros(len(trace.host.name), bool)
    found[trace.kernels.launch[reads]] = True
    return found


def closing_wait(trace: Trace) -> Ints:
    """The event in which the runner waited for the device after the last captured step; empty in traces of
    other tools. This wait is not the script's."""
    host, end = trace.host, trace.window_ns[1]
    if trace.manifest.line_events == "none":
        return np.zeros(0, np.int64)
    before = np.flatnonzero((host.thread == trace.main) & (host.start_ns < end))
    last = before[np.argmax(host.start_ns[before])][None] if len(before) else before
    return last[[trace.names[name].startswith(WHOLE_DEVICE) for name in host.name[last].tolist()]]
