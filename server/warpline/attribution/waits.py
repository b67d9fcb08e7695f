"""Calls in which the host waits for the device, the script's and the runner's own."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import COPY, RUNTIME, Bools, Ints, Trace, take

#: What torch.cuda.synchronize() calls.
WHOLE_DEVICE = ("cudaDeviceSynchronize", "hipDeviceSynchronize")

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


def sync_calls(trace: Trace) -> Bools:
    """Which host events wait for the device."""
    waits = trace.names.mask(*SYNCS) & ~trace.names.mask(*NOT_SYNCS)
    found: Bools = waits[trace.host.name] & (trace.host.kind == RUNTIME)
    return found


def blocking_copies(trace: Trace) -> Bools:
    """Which kernels are copies (pageable ones) whose call returned only when they were done."""
    host, kernels = trace.host, trace.kernels
    found: Bools = (kernels.kind == COPY) & (kernels.launch >= 0)
    return found & (take(host.end_ns, kernels.launch) >= kernels.end_ns)


def closing_wait(trace: Trace) -> Ints:
    """The event, if there is one, in which the runner itself waited for the device after the last
    captured step: no line of the script's waits there. Traces that are not ours have none."""
    host, end = trace.host, trace.window_ns[1]
    if trace.manifest.line_events == "none":
        return np.zeros(0, np.int64)
    before = np.flatnonzero((host.thread == trace.main) & (host.start_ns < end))
    last = before[np.argmax(host.start_ns[before])][None] if len(before) else before
    return last[[trace.names[name].startswith(WHOLE_DEVICE) for name in host.name[last].tolist()]]
