"""Host time by line: at the line, waiting for the device, for the loader, in the garbage collector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.accounting import Account, less
from warpline.attribution.marks import inside, loader_spans
from warpline.attribution.scene import Scene
from warpline.attribution.timeline import overlay, union
from warpline.trace.columns import RUNTIME, Bools, Floats, Ints, Trace

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


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Milliseconds per step by line number, at the unprofiled step's scale; ``calls`` a step."""

    cpu: Floats
    sync: Floats
    loader: Floats
    gc: Floats
    calls: Floats


def sync_calls(trace: Trace) -> Bools:
    """Which host events wait for the device."""
    waits = [name.startswith(SYNCS) and not name.startswith(NOT_SYNCS) for name in trace.names]
    found: Bools = np.array(waits or [False])[trace.host.name] & (trace.host.kind == RUNTIME)
    return found


def host_costs(scene: Scene, accounted: Account) -> HostCosts:
    trace, scale, cost = scene.trace, accounted.host_scale, scene.cost
    host, records = trace.host, trace.records
    seen = np.zeros(len(scene.table))
    for thread, pieces in enumerate(scene.lines):
        # What a helper thread does while nothing of ours runs on it is waiting, not work.
        rows = pieces.op >= 0 if thread != trace.main else np.ones(len(pieces), bool)
        seen += scene.by_line(pieces.line[rows], pieces.length_ns[rows])
    began = scene.begun(host.start_ns)
    taken = scene.by_line(scene.placed.line[began], np.full(int(began.sum()), cost.per_op_ns))
    at = scene.table.of_location[records.location[scene.begun(records.time_ns)]]
    taken += scene.by_line(at, np.full(len(at), cost.per_line_ns))
    waits = sync_calls(trace) & began
    return HostCosts(
        cpu=less(seen, taken) * scale,
        sync=scene.by_line(scene.placed.line[waits], (host.end_ns - host.start_ns)[waits]) * scale,
        loader=_loading(scene) * scale,
        gc=_within(scene, *_collections(trace)) * scale,
        calls=_calls(scene) / trace.steps,
    )


def _loading(scene: Scene) -> Floats:
    """Nanoseconds of waiting for, or making, the next batch, less what recording them cost."""
    trace, cost, main = scene.trace, scene.cost, scene.trace.main
    start, end = loader_spans(trace, main)
    records, host = trace.records, trace.host
    low, high = records.first[main], records.first[main + 1]
    recorded = np.arange(low, high)[inside(start, end, records.time_ns[low:high])]
    recorded = recorded[scene.begun(records.time_ns[recorded])]
    ops = np.flatnonzero((host.thread == main) & scene.begun(host.start_ns))
    ops = ops[inside(start, end, host.start_ns[ops])]
    at = scene.table.of_location[records.location[recorded]]
    taken = scene.by_line(at, np.full(len(at), cost.per_line_ns))
    taken += scene.by_line(scene.placed.line[ops], np.full(len(ops), cost.per_op_ns))
    return less(_within(scene, start, end), taken)


def _within(scene: Scene, start: Ints, end: Ints) -> Floats:
    part, _ = overlay(scene.lines[scene.trace.main], start, end)
    return scene.by_line(part.line, part.length_ns)


def _collections(trace: Trace) -> tuple[Ints, Ints]:
    spans = np.array(trace.facts.gc_ns, np.int64).reshape(-1, 2)
    return union(spans[:, 0], spans[:, 1])


def _calls(scene: Scene) -> Floats:
    """How often each line was begun.

    A line recorded again because Python came back to it from a function that it called does not
    count: the record before is another function's, and this function was at this very location last.
    """
    records = scene.trace.records
    functions = np.array([function for _, _, function in scene.trace.locations.locations] or [-1])
    function = functions[records.location]
    by = np.lexsort((np.arange(len(function)), function, records.thread))
    again = np.zeros(len(function), bool)
    this, before = by[1:], by[:-1]
    same = (function[this] == function[before]) & (records.thread[this] == records.thread[before])
    again[this] = same & (records.location[this] == records.location[before]) & (this != before + 1)
    rows = ~again & scene.begun(records.time_ns)
    return scene.by_line(scene.table.of_location[records.location[rows]], np.ones(int(rows.sum())))
