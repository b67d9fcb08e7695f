"""Host time by line, and its parts: waits for the device, the loader, garbage collection, the allocator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution import anomaly
from warpline.attribution.accounting import Account, less
from warpline.attribution.allocator import allocator_calls
from warpline.attribution.marks import loader_spans
from warpline.attribution.scene import Scene
from warpline.attribution.stalled import stalled_ns
from warpline.attribution.timeline import overlay, union
from warpline.attribution.waits import closing_wait, sync_calls, waiting_reads
from warpline.model import costs
from warpline.trace.columns import OP, Floats, Ints, Trace, occurring, take

#: The most that an operator takes which touches no element, with its record.
VIEW_NS = costs.bound("view-ns")


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Milliseconds per step by line number, scaled to the unprofiled step. Counts per step: ``calls``,
    ``syncs`` (calls that wait for the device) and ``allocations`` (allocator calls into the driver).

    ``sync``, ``loader``, ``gc``, ``allocator``, ``stalled``, ``on_host``, ``tracebacks`` and ``checks`` are
    parts of ``cpu``. If the host runs ahead of the device, the sum of ``cpu`` over lines is less than the
    step: the difference is the host's lead at the end of the capture.
    """

    cpu: Floats
    sync: Floats
    syncs: Floats
    loader: Floats
    gc: Floats
    tracebacks: Floats  # stored by anomaly detection
    checks: Floats  # of gradients for NaN, by anomaly detection
    calls: Floats
    allocator: Floats
    allocations: Floats
    stalled: Floats
    on_host: Floats  # in operators that queue nothing on the device


def host_costs(scene: Scene, accounted: Account) -> HostCosts:
    """Host time of each line and its parts, in milliseconds per step."""
    trace, scale, cost = scene.trace, accounted.host_scale, scene.cost
    host, records = trace.host, trace.records
    seen = np.zeros(len(scene.table))
    for thread, pieces in enumerate(scene.lines):
        # A helper thread without a recorded call is waiting, not working.
        rows = pieces.op >= 0 if thread != trace.main else np.ones(len(pieces), bool)
        seen += scene.by_line(pieces.line[rows], pieces.length_ns[rows])
    began = scene.begun(host.start_ns)
    ops = scene.by_line(scene.placed.line[began], np.ones(int(began.sum())))
    taken = ops * cost.per_op_ns
    at = scene.table.of_location[records.location[scene.recorded(records)]]
    taken += scene.by_line(at, np.full(len(at), cost.per_line_ns))
    at = scene.under[scene.recorded(trace.inside)]
    taken += scene.by_line(at, np.full(len(at), cost.per_library_line_ns))
    waits, ours = sync_calls(trace) & began, closing_wait(trace)
    waits[ours] = False
    seen -= _within(scene, host.start_ns[ours], host.end_ns[ours])
    allocates = allocator_calls(trace) & began
    allocator = scene.by_line(scene.placed.line[allocates], (host.end_ns - host.start_ns)[allocates]) * scale
    # Without a separate device, the account has already divided the host's time among the lines.
    alone = accounted.idle_ms + scene.by_line(scene.placed.line, accounted.op_ms)
    cpu = less(seen, taken) * scale if trace.on_gpu else alone
    waited = waits | (waiting_reads(trace) & began)
    sync = scene.by_line(scene.placed.line[waited], (host.end_ns - host.start_ns)[waited]) * scale
    # The slowdown that an operator's cost is taken from also has what other processes took of these steps.
    measured = trace.facts.op_record_ns
    recorded = taken + ops * (0.0 if measured is None else measured - cost.per_op_ns)
    checks = np.minimum(_checks(scene, accounted), cpu)
    stored = _stored(scene) if not trace.on_gpu else cpu * _traceback_share(scene, seen, recorded)
    return HostCosts(
        cpu=cpu,
        sync=np.minimum(sync, cpu),
        syncs=scene.by_line(scene.placed.line[waits], np.ones(int(waits.sum()))) / trace.steps,
        loader=_loading(scene, cpu),
        gc=np.minimum(_within(scene, *_collections(trace)) * scale, cpu),
        tracebacks=np.minimum(stored, cpu - checks),
        checks=checks,
        calls=_calls(scene) / trace.steps,
        allocator=np.minimum(allocator, cpu),
        allocations=scene.by_line(scene.placed.line[allocates], np.ones(int(allocates.sum()))) / trace.steps,
        stalled=np.minimum(scene.by_line(scene.placed.line, stalled_ns(trace)) * scale, cpu),
        on_host=np.minimum(scene.by_line(scene.placed.line, _on_host_ns(trace)) * scale, cpu),
    )


def _on_host_ns(trace: Trace) -> Floats:
    """Nanoseconds of operators on tensors in the host's memory, beside a device: of calls of the lines' own
    that queue nothing on it and do not wait for it, those that take longer than a view of a tensor."""
    host = trace.host
    found = np.zeros(len(host))
    queue = np.zeros(len(host), bool)
    queue[trace.kernels.launch[trace.kernels.launch >= 0]] = True
    queue |= sync_calls(trace)
    outer = np.flatnonzero((host.parent < 0) & (host.kind == OP))
    for thread in occurring(host.thread[outer], len(trace.threads)).tolist() if trace.on_gpu else ():
        calls = np.sort(host.start_ns[(host.thread == thread) & queue])
        rows = outer[host.thread[outer] == thread]
        first, last = (np.searchsorted(calls, when[rows]) for when in (host.start_ns, host.end_ns))
        rows = rows[first == last]
        found[rows] = np.maximum(0.0, (host.end_ns - host.start_ns)[rows] - VIEW_NS)
    low, high = trace.window_ns
    return np.where((host.start_ns >= low) & (host.start_ns < high), found, 0.0)


def _loading(scene: Scene, cpu: Floats) -> Floats:
    """The part of each line's host time in which the main thread waited for the next batch or loaded it."""
    main = scene.lines[scene.trace.main]
    whole = scene.by_line(main.line, main.length_ns)
    part = _within(scene, *loader_spans(scene.trace, scene.trace.main))
    share: Floats = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return cpu * share


def _traceback_share(scene: Scene, seen: Floats, taken: Floats) -> Floats:
    """The part, 0 to 1, of each line's host time (``seen`` in the window, ``taken`` of it by the profiler) in
    which tracebacks were stored. Nothing is recorded meanwhile: the profiler slows the rest."""
    stored = np.minimum(_within(scene, *anomaly.tracebacks(scene.trace)), seen)
    own = stored + less(seen - stored, taken)
    share: Floats = np.divide(stored, own, out=np.zeros(len(stored)), where=own > 0)
    return share


def _stored(scene: Scene) -> Floats:
    """Milliseconds a step in which each line stored tracebacks, without a device. Nothing is recorded then:
    they took that long in the timed steps, too, but for what other processes took of either."""
    facts, cores = scene.trace.facts, scene.trace.facts.cores
    low, high = scene.trace.window_ns
    stored = _within(scene, *anomaly.tracebacks(scene.trace)) / scene.trace.steps / 1e6
    if facts.queued_ns is None or cores.queued_ns is None or not cores.window_ns:
        return stored
    captured, timed = 1 - facts.queued_ns / max(1, high - low), 1 - cores.queued_ns / cores.window_ns
    scaled: Floats = stored * (captured / timed if captured > 0 and timed > 0 else 1.0)
    return scaled


def _checks(scene: Scene, accounted: Account) -> Floats:
    """Host time of the checks for NaN; on a device with the waits in them."""
    trace, host = scene.trace, scene.trace.host
    inside = anomaly.checks(trace)
    if not trace.on_gpu:
        return scene.by_line(scene.placed.line[inside], accounted.op_ms[inside])
    outer = inside & ~take(inside, host.parent, missing=False) & scene.begun(host.start_ns)
    length = (host.end_ns - host.start_ns)[outer]
    return scene.by_line(scene.placed.line[outer], length) * accounted.host_scale


def _within(scene: Scene, start: Ints, end: Ints) -> Floats:
    part, _ = overlay(scene.lines[scene.trace.main], start, end)
    return scene.by_line(part.line, part.length_ns)


def _collections(trace: Trace) -> tuple[Ints, Ints]:
    spans = np.array(trace.facts.gc_ns, np.int64).reshape(-1, 2)
    return union(spans[:, 0], spans[:, 1])


def _calls(scene: Scene) -> Floats:
    """Executions of each line per step. A return to the line from a function that it called does not
    count."""
    records = scene.trace.records
    estimated, times = scene.estimated()
    rows = ~records.again & scene.begun(records.time_ns) & ~np.isin(records.location, estimated)
    calls = scene.by_line(scene.table.of_location[records.location[rows]], np.ones(int(rows.sum())))
    return calls + scene.by_line(scene.table.of_location[estimated], times) * scene.trace.steps
