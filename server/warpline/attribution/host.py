"""Host time by line: at the line, waiting for the device, for the loader, in the garbage collector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.accounting import Account, by_line, less
from warpline.attribution.marks import loader_spans
from warpline.attribution.overhead import Overhead
from warpline.attribution.place import Placed
from warpline.attribution.table import LineTable
from warpline.attribution.timeline import Pieces, overlay, union
from warpline.trace.columns import RUNTIME, Bools, Floats, Trace

#: Runtime calls in which the host waits until the device has done what was asked before.
SYNCS = (
    "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cudaMemset",
    "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH", "cudaFree", "hipStreamSynchronize",
    "hipDeviceSynchronize", "hipEventSynchronize",
)  # fmt: skip
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
    return np.array(waits or [False])[trace.host.name] & (trace.host.kind == RUNTIME)


def host_costs(
    trace: Trace, table: LineTable, placed: Placed, lines: list[Pieces], accounted: Account,
    cost: Overhead, window: tuple[int, int],
) -> HostCosts:  # fmt: skip
    host, records = trace.host, trace.records
    scale = accounted.host_scale
    inside = (records.time_ns >= window[0]) & (records.time_ns < window[1])
    seen = np.zeros(len(table))
    for thread, pieces in enumerate(lines):
        # What a helper thread does while nothing of ours runs on it is waiting, not work.
        rows = pieces.op >= 0 if thread != trace.main else np.ones(len(pieces), bool)
        seen += by_line(pieces.line[rows], pieces.length_ns[rows], table)
    began = (host.start_ns >= window[0]) & (host.start_ns < window[1])
    taken = by_line(placed.line[began], np.full(int(began.sum()), cost.per_op_ns), table)
    at = table.of_location[records.location[inside]]
    taken += by_line(at, np.full(len(at), cost.per_line_ns), table)
    waits = sync_calls(trace) & began
    length = (host.end_ns - host.start_ns)[waits]
    main = lines[trace.main]
    return HostCosts(
        cpu=less(seen, taken) * scale,
        sync=by_line(placed.line[waits], length, table) * scale,
        loader=_within(main, *loader_spans(trace, trace.main), table) * scale,
        gc=_within(main, *_collections(trace), table) * scale,
        calls=_calls(trace, table, window) / trace.steps,
    )


def _within(main: Pieces, start: np.ndarray, end: np.ndarray, table: LineTable) -> Floats:
    part, _ = overlay(main, start, end)
    return by_line(part.line, part.length_ns, table)


def _collections(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    spans = np.array(trace.facts.gc_ns, np.int64).reshape(-1, 2)
    return union(spans[:, 0], spans[:, 1])


def _calls(trace: Trace, table: LineTable, window: tuple[int, int]) -> Floats:
    """How often each line was begun.

    A line recorded again because Python came back to it from a function that it called does not
    count: the record before is another function's, and this function was at this very location last.
    """
    records = trace.records
    functions = np.array([function for _, _, function in trace.locations.locations] or [-1])
    function = functions[records.location]
    by = np.lexsort((np.arange(len(function)), function, records.thread))
    again = np.zeros(len(function), bool)
    this, before = by[1:], by[:-1]
    same = (function[this] == function[before]) & (records.thread[this] == records.thread[before])
    again[this] = same & (records.location[this] == records.location[before]) & (this != before + 1)
    rows = ~again & (records.time_ns >= window[0]) & (records.time_ns < window[1])
    return by_line(table.of_location[records.location[rows]], np.ones(int(rows.sum())), table)
