"""Divides the step into loader, host, forward, backward, optimizer, communication and idle time.

The parts are sums of the account's rows (:class:`warpline.attribution.accounting.Parts`), so they add up to
the step, as the lines do.
"""

from __future__ import annotations

import numpy as np

from warpline.attribution.accounting import Account
from warpline.attribution.communication import exchanges
from warpline.attribution.marks import inside, loader_spans
from warpline.attribution.place import FORWARD
from warpline.attribution.scene import Scene
from warpline.attribution.timeline import Pieces, union
from warpline.attribution.waits import closing_wait, sync_calls
from warpline.model.report import Composition
from warpline.trace.columns import COMMUNICATION, OP, Bools, Floats, Ints, take

#: torch's own ranges around ``Optimizer.step`` and ``Optimizer.zero_grad``.
OPTIMIZER_MARK = "Optimizer."


def composition(scene: Scene, accounted: Account) -> Composition:
    """Milliseconds of a step by part; they add up to the step."""
    parts, trace = accounted.parts, scene.trace
    busy = parts.work >= 0
    work, ms = parts.work[busy], parts.step_ms[busy]
    if trace.on_gpu:
        begun, phase = trace.kernels.launch[work], scene.shares.phase
        collective: Bools = trace.kernels.kind[work] == COMMUNICATION
        loading = np.zeros(len(work), bool)
    else:
        begun, phase = work, scene.placed.phase[work]
        collective = np.zeros(len(work), bool)
        loads = inside(*loader_spans(trace, trace.main), trace.host.start_ns)
        loading = ((trace.host.thread == trace.main) & loads)[work]
    # The closure of ``optimizer.step(closure)`` runs forward and backward; Lightning always passes one.
    optimizer = _in_optimizer(scene, begun) & (phase == FORWARD) & ~collective & ~loading
    backward = (phase != FORWARD) & ~collective & ~loading & ~optimizer
    forward = ~(collective | loading | optimizer | backward)
    loader, exchanged, waiting, host = idle_shares(scene, accounted.idle)
    idle_ms = parts.step_ms[~busy]
    made = {
        "loader_ms": float(ms[loading].sum() + (idle_ms * loader).sum()),
        "host_ms": float((idle_ms * host).sum()),
        "forward_ms": float(ms[forward].sum()),
        "backward_ms": float(ms[backward].sum()),
        "optimizer_ms": float(ms[optimizer].sum()),
        "communication_ms": float(ms[collective].sum() + (idle_ms * exchanged).sum()),
        "idle_ms": float((idle_ms * waiting).sum()),
    }
    # If no idle moment was recorded, no row has the idle time of the unprofiled step.
    made["idle_ms"] += max(0.0, accounted.step_ms - sum(made.values()))
    return Composition(**made)


def idle_shares(scene: Scene, idle: Pieces) -> tuple[Floats, Floats, Floats, Floats]:
    """Shares of each idle moment, which add up to 1: the host was in a loader; ranks exchanged data (on a CPU
    only: on a GPU that is device work); the host waited for the device; the host ran Python or queued
    work."""
    trace = scene.trace
    loader = _covered(*loader_spans(trace, trace.main), idle)
    none = np.zeros(len(idle))
    own = exchanges(trace)
    exchanged = none if trace.on_gpu else _covered(*union(own.start_ns, own.end_ns), idle)
    exchanged = np.minimum(exchanged, 1 - loader)
    waits = sync_calls(trace)
    waits[closing_wait(trace)] = True
    in_call = take(waits, idle.op, missing=False)
    waiting = np.where(in_call, 1 - loader - exchanged, 0.0)
    return loader, exchanged, waiting, 1 - loader - exchanged - waiting


def _in_optimizer(scene: Scene, event: Ints) -> Bools:
    """Which host events (-1: none) began in a call of an optimizer on their thread, after its closure. The
    closure ends with the last backward operator that began during the call on any thread."""
    trace, host = scene.trace, scene.trace.host
    found = np.zeros(len(host), bool)
    behind = np.sort(host.start_ns[(scene.placed.phase != FORWARD) & (host.kind == OP)])
    ranges = trace.names.mask(OPTIMIZER_MARK)[trace.marks.name]
    for each in np.unique(trace.marks.thread[ranges]).tolist():
        rows = ranges & (trace.marks.thread == each)
        start, end = trace.marks.start_ns[rows], trace.marks.end_ns[rows]
        last = np.concatenate([[0], behind])[np.searchsorted(behind, end)]
        start = np.maximum(start, last)
        mine = host.thread == each
        found[mine] = inside(*union(start, end), host.start_ns[mine])
    begun: Bools = take(found, event, missing=False)
    return begun


def _covered(start: Ints, end: Ints, pieces: Pieces) -> Floats:
    """The share of each piece, 0 to 1, inside the disjoint sorted spans."""
    if not len(start):
        return np.zeros(len(pieces))
    # Total length of the spans up to a moment: it grows inside a span and is constant between spans.
    first = int(start[0])
    edges = np.column_stack([start, end]).ravel() - first
    reach = np.column_stack([np.cumsum(end - start) - (end - start), np.cumsum(end - start)]).ravel()
    until, since = (np.interp(at - first, edges, reach) for at in (pieces.end_ns, pieces.start_ns))
    length = np.maximum(pieces.length_ns, 1)
    covered: Floats = np.clip((until - since) / length, 0.0, 1.0)
    return covered
