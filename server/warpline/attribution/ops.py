"""The operators of each line, grouped by name, phase and input signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpline.attribution.accounting import Account
from warpline.attribution.flops import bytes_of, flops_of
from warpline.attribution.place import PHASES, Placed
from warpline.attribution.scene import Scene
from warpline.model.profile import MOST_OPS_A_LINE, Op
from warpline.trace.columns import OP, Bools, Floats, Ints, Trace, take

DENSE = 2  # places for each row, up to which a table is quicker than sorting


def outer_ops(trace: Trace, placed: Placed) -> Bools:
    """Which host events are outermost ops: called by a line directly, and not by another op.

    Autograd's wrappers (the node around a backward call, gradient accumulation) do not count as ops here. Nor
    does an op that runs Python (the user's ``autograd.Function``).
    """
    host = trace.host
    call = placed.around.call
    caller = take(call, host.parent)
    again = placed.record > take(placed.record, caller)
    chosen: Bools = (call == np.arange(len(host))) & ((caller < 0) | again)
    return chosen


def launches_of(trace: Trace) -> Ints:
    """Number of kernels and copies that each host event queued; for an operator, those of its runtime
    calls."""
    host, kernels = trace.host, trace.kernels
    queued = kernels.launch[kernels.launch >= 0]
    owner = np.where(host.parent[queued] >= 0, host.parent[queued], queued)
    return np.bincount(owner, minlength=len(host))


def device_ms_of(trace: Trace, op_ms: Floats, kernel_ms: Floats) -> Floats:
    """Device time in ms of the kernels that each operator queued itself; on a CPU its exclusive time."""
    host, kernels = trace.host, trace.kernels
    rows = np.flatnonzero(kernels.launch >= 0)
    queued = kernels.launch[rows]
    owner = np.where(host.parent[queued] >= 0, host.parent[queued], queued)
    return op_ms + np.bincount(owner, weights=kernel_ms[rows], minlength=len(host))


#: The op whose scalar arguments (stride, padding, ...) are kept, since its shapes do not determine them.
CONVOLUTION = "aten::convolution"


def op_table(scene: Scene, accounted: Account) -> dict[int, list[Op]]:
    """Ops by line number, longest on the device first; counts and times per step.

    Of a line with more than ``MOST_OPS_A_LINE`` those are kept that take longest on the device or on the
    host: an operator that calls another one, which queues the kernels, has no device time of its own."""
    trace, host, placed = scene.trace, scene.trace.host, scene.placed
    rows = np.flatnonzero((host.kind == OP) & scene.inside(host.start_ns, host.end_ns))
    outer = outer_ops(trace, placed)
    device_ms = device_ms_of(trace, accounted.op_ms, accounted.kernel_ms)
    keys, inverse = grouped(
        (placed.line[rows], placed.phase[rows], host.name[rows], host.signature[rows], outer[rows])
    )
    size = keys.shape[1]
    count = np.bincount(inverse, minlength=size) / trace.steps
    device = np.bincount(inverse, weights=device_ms[rows], minlength=size)
    length = (host.end_ns - host.start_ns)[rows]
    cpu = np.bincount(inverse, weights=length, minlength=size) * accounted.host_scale
    launches = np.bincount(inverse, weights=launches_of(trace)[rows], minlength=size) / trace.steps
    out: dict[int, list[Op]] = {}
    kept = _first_of_each(keys[0], np.lexsort((-cpu, -np.maximum(device, cpu))), MOST_OPS_A_LINE)
    for at in np.lexsort((-cpu, -device)).tolist():
        line, phase, name, signature, by_line = keys[:, at].tolist()
        if kept[at]:
            inputs = trace.signatures[signature]
            label = trace.names[name]
            out.setdefault(line, []).append(
                Op(
                    name=label,
                    phase=PHASES[phase],
                    count=float(count[at]),
                    device_ms=float(device[at]),
                    cpu_ms=float(cpu[at]),
                    shapes=inputs.shapes,
                    dtypes=inputs.dtypes,
                    strides=inputs.strides,
                    values=inputs.values if label == CONVOLUTION else (),
                    launches=float(launches[at]),
                    outer=bool(by_line),
                    flops=flops_of(label, inputs),
                    bytes=bytes_of(label, inputs),
                )
            )
    return out


def _first_of_each(group: Ints, order: Ints, count: int) -> Bools:
    """Which rows are among the first ``count`` of their group, in this order."""
    by = order[np.argsort(group[order], kind="stable")]
    begins = np.flatnonzero(np.diff(group[by], prepend=-1))
    within = np.arange(len(by)) - np.repeat(begins, np.diff(begins, append=len(by)))
    kept = np.zeros(len(group), bool)
    kept[by] = within < count
    return kept


def grouped(columns: Sequence[NDArray[np.integer[Any] | np.bool_]]) -> tuple[Ints, Ints]:
    """The distinct rows of columns of small numbers (each a column of the result), and for each row which of
    them it is.

    As ``np.unique(np.stack(columns), axis=1, return_inverse=True)``, on one packed integer: far faster.
    """
    count = len(columns[0])
    packed = np.zeros(count, np.int64)
    room = 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if room * size >= 1 << 62:
            _, packed = np.unique(packed, return_inverse=True)
            room = len(packed) + 1
        packed = packed * size + column
        room *= size
    if room <= DENSE * count:  # a table with a place for each possible number is quicker than sorting
        example = np.full(room, -1, np.int64)
        example[packed] = np.arange(count)
        met = np.flatnonzero(example >= 0)
        number = np.empty(room, np.int64)
        number[met] = np.arange(len(met))
        return np.stack([column[example[met]] for column in columns]), number[packed]
    by = np.argsort(packed, kind="stable")
    first = np.ones(len(by), bool)
    first[1:] = packed[by[1:]] != packed[by[:-1]]
    inverse = np.empty(len(by), np.int64)
    inverse[by] = np.cumsum(first) - 1
    return np.stack([column[by[first]] for column in columns]), inverse
