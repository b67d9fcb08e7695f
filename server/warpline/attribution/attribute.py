"""Trace -> Profile: the stages in their order."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account, account, by_line
from warpline.attribution.host import HostCosts, host_costs
from warpline.attribution.kernels import Shares, group_table, kernel_table, shares
from warpline.attribution.marks import users_marks
from warpline.attribution.memory import Held, held
from warpline.attribution.ops import device_ms_of, op_table, outer_ops
from warpline.attribution.overhead import overhead
from warpline.attribution.peaks import peaks_of
from warpline.attribution.place import BACKWARD, FORWARD, RECOMPUTE, Placed, place
from warpline.attribution.roofline import roofline
from warpline.attribution.table import LineTable, line_table
from warpline.attribution.timeline import timelines
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Attributed, Steps, Unattributed
from warpline.trace.columns import COMMUNICATION, COPY, OP, SET, Floats, Trace

#: Lines that nothing at all was seen at are not worth a row.
LEAST_MS = 1e-6


def attribute(trace: Trace) -> Profile:
    """Which line caused every kernel and every idle moment, per captured step (see model.profile)."""
    table = line_table(trace.locations)
    placed = place(trace, table)
    window = _window(trace)
    profiled_ms = (window[1] - window[0]) / 1e6 / trace.steps
    timed = trace.manifest.timed_ns
    step_ms = float(np.mean(timed)) / 1e6 if timed else profiled_ms
    cost = overhead(trace, step_ms * 1e6, window)
    lines = timelines(trace, table, placed, window)
    of_kernel = shares(trace, table, placed)
    accounted = account(trace, table, placed, lines, of_kernel, cost, step_ms, window)
    costs = host_costs(trace, table, placed, lines, accounted, cost, window)
    memory = held(trace, table, placed)
    device = _device(trace, table, placed, of_kernel, accounted, window)
    rows = _rows(trace, table, placed, of_kernel, accounted, costs, memory, device, window)
    device_ms = float(device["all"].sum())
    lost_ms = float(accounted.busy_ms[0] + accounted.idle_ms[0])
    busy_percent = 100 * min(1.0, accounted.device_busy_ms / step_ms) if step_ms else 0.0
    return Profile(
        manifest=trace.manifest,
        facts=trace.facts,
        steps=Steps(
            len(trace.manifest.captured), step_ms, profiled_ms,
            profiled_ms / step_ms if step_ms else 1.0, busy_percent,
        ),
        lines=rows,
        unattributed=Unattributed(float(device["all"][0]), lost_ms),
        attributed=Attributed(
            100 * (1 - float(device["all"][0]) / device_ms) if device_ms else 100.0,
            100 * (1 - lost_ms / step_ms) if step_ms else 100.0,
        ),
        sources=trace.sources,
        groups=group_table(table, of_kernel, accounted.kernel_ms),
        marks=users_marks(trace, accounted, accounted.kernel_ms, window),
        notes=_notes(trace, of_kernel, accounted),
        totals=_totals(accounted, costs, device, memory),
    )  # fmt: skip


def _window(trace: Trace) -> tuple[int, int]:
    """The captured steps, and on until the device is idle: the host runs ahead of it."""
    begin, end = trace.window_ns
    host, kernels = trace.host, trace.kernels
    launched = kernels.launch >= 0
    if launched.any():
        queued_at = host.start_ns[kernels.launch[launched]]
        inside = (queued_at >= begin) & (queued_at < end)
        end = max(end, int(kernels.end_ns[launched][inside].max(initial=end)))
    return begin, max(end, begin + 1)


def _device(
    trace: Trace, table: LineTable, placed: Placed, of: Shares, accounted: Account, window: tuple[int, int]
) -> dict[str, Floats]:
    """Device time, and its parts, in milliseconds per step by line number; launches per step."""
    if trace.on_gpu:
        line, phase, ms = of.line, of.phase, accounted.kernel_ms[of.kernel] * of.weight
        kind = trace.kernels.kind[of.kernel]
        seen = (trace.kernels.end_ns[of.kernel] > window[0]) & (trace.kernels.start_ns[of.kernel] < window[1])
        launched = of.weight * seen
    else:
        host = trace.host
        line, phase, ms = placed.line, placed.phase, accounted.op_ms
        kind = np.full(len(host), -1)
        parent = np.zeros(len(host), bool)
        parent[host.parent[host.parent >= 0]] = True
        # The calls that do the work: those that call no other.
        seen = (host.start_ns >= window[0]) & (host.start_ns < window[1])
        launched = (~parent & (host.kind == OP) & seen).astype(np.float64)

    def part(rows: object) -> Floats:
        return by_line(line, ms * rows, table)

    return {
        "all": by_line(line, ms, table),
        "forward": part(phase == FORWARD),
        "backward": part(phase == BACKWARD),
        "recompute": part(phase == RECOMPUTE),
        "copy": part((kind == COPY) | (kind == SET)),
        "communication": part(kind == COMMUNICATION),
        "launches": by_line(line, launched, table) / trace.steps,
    }


def _rows(
    trace: Trace, table: LineTable, placed: Placed, of: Shares, accounted: Account, costs: HostCosts,
    memory: Held, device: dict[str, Floats], window: tuple[int, int],
) -> tuple[LineCost, ...]:  # fmt: skip
    outer = outer_ops(trace, placed)
    ops = op_table(
        trace,
        placed,
        outer,
        device_ms_of(trace, accounted.op_ms, accounted.kernel_ms),
        accounted.host_scale,
        window,
    )
    kernels = kernel_table(trace, of, accounted.kernel_ms, window)
    peaks = peaks_of(trace.manifest.device.name, trace.facts)
    step = accounted.busy_ms + accounted.idle_ms
    groups: dict[int, list[int]] = {}
    for at, (_, members, _) in enumerate(of.groups):
        for line in members:
            groups.setdefault(line, []).append(at)
    worth = step + device["all"] + costs.cpu > LEAST_MS
    worth |= (memory.at_peak > 0) | (memory.kept_per_step > 0)
    out = []
    for at in np.argsort(-step, kind="stable").tolist():
        if at == 0 or not worth[at]:
            continue
        its_ops = tuple(ops.get(at, ()))
        device_ms, launches = float(device["all"][at]), float(device["launches"][at])
        out.append(
            LineCost(
                file=table.file[at],
                line=table.line[at],
                function=table.function[at],
                step_ms=float(step[at]),
                device_ms=device_ms,
                forward_ms=float(device["forward"][at]),
                backward_ms=float(device["backward"][at]),
                recompute_ms=float(device["recompute"][at]),
                idle_ms=float(accounted.idle_ms[at]),
                cpu_ms=float(costs.cpu[at]),
                sync_ms=float(costs.sync[at]),
                loader_ms=float(costs.loader[at]),
                gc_ms=float(costs.gc[at]),
                copy_ms=float(device["copy"][at]),
                communication_ms=float(device["communication"][at]),
                calls=float(costs.calls[at]),
                launches=launches,
                memory_bytes=int(memory.at_peak[at]),
                kept_bytes=float(memory.kept_per_step[at]),
                kernels=tuple(kernels.get(at, ())),
                ops=its_ops,
                roofline=roofline(its_ops, device_ms, launches, peaks, trace.facts.flags) if peaks else None,
                group=tuple(groups.get(at, ())),
            )  # fmt: skip
        )
    return tuple(out)


def _notes(trace: Trace, of: Shares, accounted: Account) -> tuple[str, ...]:
    notes = [*trace.manifest.notes, *trace.notes]
    graph_ms = float(accounted.kernel_ms[trace.kernels.in_graph].sum())
    if graph_ms > 0:
        notes.append(
            f"{graph_ms:.2f} ms a step ran in replayed CUDA graphs: torch does not say which lines were captured, "
            "so this time is unattributed (the device was not idle)"
        )
    if not trace.manifest.timed_ns:
        notes.append("no step was timed without the profiler: times are those under it")
    if trace.on_gpu and accounted.device_busy_ms > accounted.step_ms * 1.02:
        notes.append(
            "the device worked longer in the captured steps than a step takes without the profiler: "
            "the steps differ in length"
        )
    if trace.on_gpu and peaks_of(trace.manifest.device.name, trace.facts) is None:
        notes.append(f"no roofline: the peaks of {trace.manifest.device.name or 'this device'} are not known")
    return tuple(dict.fromkeys(notes))


def _totals(
    accounted: Account, costs: HostCosts, device: dict[str, Floats], memory: Held
) -> dict[str, float]:
    """Sums over all lines and the unattributed rest, per step."""
    return {
        "busy_ms": accounted.device_busy_ms,
        "idle_ms": float(accounted.idle_ms.sum()),
        "device_ms": float(device["all"].sum()),
        "copy_ms": float(device["copy"].sum()),
        "communication_ms": float(device["communication"].sum()),
        "launches": float(device["launches"].sum()),
        "sync_ms": float(costs.sync.sum()),
        "loader_ms": float(costs.loader.sum()),
        "gc_ms": float(costs.gc.sum()),
        "peak_bytes": float(memory.peak_bytes),
        "kept_bytes": float(memory.kept_per_step.sum()),
    }
