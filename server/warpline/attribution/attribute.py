"""Trace -> Profile: runs the stages of attribution in order."""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account, account
from warpline.attribution.autograd import Nodes, nodes
from warpline.attribution.beside import beside
from warpline.attribution.communication import communication_totals
from warpline.attribution.composition import composition
from warpline.attribution.crossing import crossings
from warpline.attribution.functions import Calls, calls_of_lines, function_table
from warpline.attribution.host import HostCosts, host_costs
from warpline.attribution.inside import inside_table
from warpline.attribution.kernels import kernel_table
from warpline.attribution.marks import users_marks
from warpline.attribution.memory import LineMemory, memory_by_line
from warpline.attribution.notes import notes
from warpline.attribution.ops import op_table
from warpline.attribution.peaks import peaks_of
from warpline.attribution.place import PHASES, own_phase
from warpline.attribution.roofline import given_to_triton, roofline
from warpline.attribution.scene import Located, Scene, locate, scene
from warpline.attribution.shares import group_table
from warpline.attribution.stacks import stacks
from warpline.attribution.tokens import generated
from warpline.model.profile import Kernel, LineCost, Op, Profile
from warpline.model.report import Attributed, Steps, Unattributed
from warpline.trace.columns import COMMUNICATION, COPY, OP, SET, Bools, Floats, Trace, occurring
from warpline.wire.run import Manifest

#: Lines with less time than this, in ms per step, and without memory get no row.
LEAST_MS = 1e-6


def attribute(trace: Trace, located: Located | None = None) -> Profile:
    """Attributes every kernel and every idle moment to a line, per captured step (see model.profile).

    ``located``: the result of :func:`locate`, if the caller has it already.
    """
    located = located or locate(trace)
    with beside() as submit:
        memory_beside = submit(memory_by_line, trace, located.table, located.placed)
        at = scene(trace, located)
        accounted = account(at)
        ops_beside = submit(op_table, at, accounted)
        graph_beside = submit(nodes, at)
        notes_beside = submit(notes, at, accounted)
        costs = host_costs(at, accounted)
        device, kernels = _device(at, accounted), kernel_table(at, accounted.kernel_ms)
        parts = composition(at, accounted)
        memory, ops, graph = memory_beside.result(), ops_beside.result(), graph_beside.result()
        said = notes_beside.result()
    step_ms, device_ms = at.step_ms, float(device["all"].sum())
    lost_ms = float(accounted.busy_ms[0] + accounted.idle_ms[0])
    busy_percent = 100 * min(1.0, accounted.device_busy_ms / step_ms) if step_ms else 0.0
    slowdown = at.profiled_ms / step_ms if step_ms else 1.0
    on = stacks(trace, at.table)
    calls = calls_of_lines(at, accounted, graph, on)
    return Profile(
        manifest=trace.manifest,
        facts=trace.facts,
        steps=_steps(trace.manifest, step_ms, at.profiled_ms, slowdown, busy_percent),
        lines=_rows(at, accounted, costs, memory, device, (ops, kernels), graph, calls),
        unattributed=Unattributed(float(device["all"][0]), lost_ms),
        attributed=Attributed(
            100 * (1 - float(device["all"][0]) / device_ms) if device_ms else 100.0,
            100 * (1 - lost_ms / step_ms) if step_ms else 100.0,
        ),
        sources=trace.sources,
        groups=group_table(at.table, at.shares, accounted.kernel_ms),
        marks=users_marks(at, accounted),
        notes=said,
        unattributed_kernels=tuple(kernels.get(0, ())),
        unattributed_ops=tuple(ops.get(0, ())),
        composition=parts,
        functions=function_table(at, accounted, on),
        crossings=crossings(trace),
        totals=_totals(accounted, costs, device, memory)
        | {"autograd_nodes": _autograd_nodes(at)}
        | {"queued_ms": (trace.facts.queued_ns or 0) * accounted.host_scale}
        | communication_totals(at, accounted),
    )


def _steps(manifest: Manifest, step_ms: float, profiled_ms: float, slowdown: float, busy: float) -> Steps:
    loop = manifest.request.loop if manifest.step_source == "loop" else None
    at = f"{loop.file}:{loop.line}" if loop is not None else ""
    return Steps(len(manifest.captured), step_ms, profiled_ms, slowdown, busy, manifest.step_source, at)


def _device(at: Scene, accounted: Account) -> dict[str, Floats]:
    """Device time, and its parts, in milliseconds per step by line number; launches per step."""
    if at.trace.on_gpu:
        of, kernels = at.shares, at.trace.kernels
        line, phase, ms = of.line, of.phase, accounted.kernel_ms[of.kernel] * of.weight
        kind = kernels.kind[of.kernel]
        launched = of.weight * at.inside(kernels.start_ns[of.kernel], kernels.end_ns[of.kernel])
    else:
        host = at.trace.host
        line, phase, ms = at.placed.line, own_phase(at.trace, at.placed.phase), accounted.op_ms
        kind = np.full(len(host), -1)
        calls_others = np.zeros(len(host), bool)
        calls_others[host.parent[host.parent >= 0]] = True
        # Count the calls that do the work: those that call no other operator.
        launched = (~calls_others & (host.kind == OP) & at.begun(host.start_ns)).astype(np.float64)

    def part(rows: Bools) -> Floats:
        return at.by_line(line[rows], ms[rows])

    count = len(at.table)
    phases = np.bincount(phase * count + line, weights=ms, minlength=len(PHASES) * count)
    forward, backward, recompute = phases.astype(np.float64).reshape(len(PHASES), count)
    return {
        "all": at.by_line(line, ms),
        "forward": forward,
        "backward": backward,
        "recompute": recompute,
        "copy": part((kind == COPY) | (kind == SET)),
        "communication": part(kind == COMMUNICATION),
        "launches": at.by_line(line, launched) / at.trace.steps,
    }


def _rows(
    at: Scene,
    accounted: Account,
    costs: HostCosts,
    memory: LineMemory,
    device: dict[str, Floats],
    below: tuple[dict[int, list[Op]], dict[int, list[Kernel]]],
    graph: Nodes,
    calls: Calls,
) -> tuple[LineCost, ...]:
    """One LineCost per line with any time or memory, the longest step time first."""
    table, trace = at.table, at.trace
    ops, kernels = below
    tokens = generated(at, accounted)
    inside = inside_table(at, accounted, list(tokens.values()))
    peaks = peaks_of(trace.manifest.device.name, trace.facts)
    step = accounted.busy_ms + accounted.idle_ms
    groups: dict[int, list[int]] = {}
    for number, (_, members, _) in enumerate(at.shares.groups):
        for line in members:
            groups.setdefault(line, []).append(number)
    worth = step + device["all"] + costs.cpu > LEAST_MS
    worth |= (memory.at_peak > 0) | (memory.kept_per_step > 0)
    given = given_to_triton(trace.facts.sites)
    out = []
    for row in np.argsort(-step, kind="stable").tolist():
        if row == 0 or not worth[row]:
            continue
        its_ops = tuple(ops.get(row, ()))
        device_ms, launches = float(device["all"][row]), float(device["launches"][row])
        cost = LineCost(
            file=table.file[row],
            line=table.line[row],
            function=table.function[row],
            step_ms=float(step[row]),
            device_ms=device_ms,
            forward_ms=float(device["forward"][row]),
            backward_ms=float(device["backward"][row]),
            recompute_ms=float(device["recompute"][row]),
            idle_ms=float(accounted.idle_ms[row]),
            cpu_ms=float(costs.cpu[row]),
            sync_ms=float(costs.sync[row]),
            syncs=float(costs.syncs[row]),
            loader_ms=float(costs.loader[row]),
            gc_ms=float(costs.gc[row]),
            traceback_ms=float(costs.tracebacks[row]),
            check_ms=float(costs.checks[row]),
            copy_ms=float(device["copy"][row]),
            communication_ms=float(device["communication"][row]),
            calls=float(costs.calls[row]),
            launches=launches,
            memory_bytes=int(memory.at_peak[row]),
            kept_bytes=float(memory.kept_per_step[row]),
            allocator_calls=float(costs.allocations[row]),
            allocator_ms=float(costs.allocator[row]),
            stalled_ms=float(costs.stalled[row]),
            on_host_ms=float(costs.on_host[row]),
            nodes=float(graph.made[row]),
            unused_nodes=float(graph.unused[row]),
            total_nodes=float(calls.nodes[row]),
            total_unused_nodes=float(calls.unused[row]),
            total_backward_ms=float(calls.backward[row]),
            called=calls.called.get(row, ()),
            kernels=tuple(kernels.get(row, ())),
            ops=its_ops,
            roofline=roofline(
                its_ops,
                device_ms,
                launches,
                peaks,
                trace.facts.flags,
                given.get((table.file[row], table.line[row]), 0.0),
            )
            if peaks
            else None,
            group=tuple(groups.get(row, ())),
            inside=inside.get(row, ()),
            tokens=tokens[row].tokens if row in tokens else None,
        )
        out.append(cost)
    return tuple(out)


def _autograd_nodes(at: Scene) -> float:
    """Nodes that a step adds to autograd's graph. Each operator records the number of the next node."""
    host = at.trace.host
    rows = np.flatnonzero(
        (host.kind == OP) & (host.sequence >= 0) & (host.forward_thread == 0) & at.begun(host.start_ns)
    )
    made = 0
    for thread in occurring(host.thread[rows], len(at.trace.threads)).tolist():
        numbers = host.sequence[rows[host.thread[rows] == thread]]
        made += int(numbers.max() - numbers.min())
    return made / at.trace.steps


def _totals(
    accounted: Account, costs: HostCosts, device: dict[str, Floats], memory: LineMemory
) -> dict[str, float]:
    """Sums per step over all lines, unattributed time included."""
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
        "recomputed_bytes": memory.recomputed_bytes,
        "allocator_calls": float(costs.allocations.sum()),
        "allocator_ms": float(costs.allocator.sum()),
        "stalled_ms": float(costs.stalled.sum()),
    }
