"""The copies that autocast adds: what goes into a product is copied to the lower precision.

A parameter is copied once a step (autocast keeps the copy until its block ends), an activation each time
a product takes it, unless the operator before made it in that precision already; the backward pass
copies the gradient of each back. torch.amp documents the first; what a copy costs is bytes over the
device's bandwidth there, and on the host what an ordinary operator costs that launches one kernel.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from warpline.simulate.device import Rates
from warpline.simulate.timeline import Timeline
from warpline.simulate.work import ELEMENTWISE
from warpline.trace.columns import Bools, Signature, Trace

#: Bytes of an element that is read as fp32 and written in 16 bits, or the other way round.
BYTES = 6
#: No kernel is shorter.
FLOOR_NS = 2_000.0
#: Half of the activations come from a product or an activation function and are in 16 bits already;
#: the others come from a norm or a residual sum, which autocast leaves in fp32.
FRESH = 0.5
#: Products of a layer with its parameters: which arguments are (weight, input), and a bias.
_LAYERS = {"aten::addmm": (2, 1, True), "aten::mm": (1, 0, False), "aten::cudnn_convolution": (1, 0, False)}


def with_casts(trace: Trace, line: Timeline, products: Bools, rates: Rates) -> Timeline:
    """``line`` with the copies added to the launch of each layer's forward product."""
    host_ns, kernel_ns = line.host_ns.copy(), line.kernel_ns.copy()
    cost_ns = _operator_ns(line)
    forward = np.flatnonzero(products & ~line.kernel_backward)
    # Of a product that launches several kernels the first stands for it.
    _, first = np.unique(line.kernel_op[forward], return_index=True)
    for at in forward[np.sort(first)].tolist():
        op = int(line.kernel_op[at])
        layer = _LAYERS.get(trace.names[int(trace.host.name[op])])
        if layer is None:
            continue
        count, moved = _copies(trace.signatures[int(trace.host.signature[op])], layer)
        segment = int(np.searchsorted(line.first, at, "right")) - 1
        # Once on the way there, once for the gradients on the way back.
        host_ns[segment] += 2 * count * cost_ns
        kernel_ns[at] += 2 * max(count * FLOOR_NS, moved / rates.bytes_per_s * 1e9)
    return replace(line, host_ns=host_ns, kernel_ns=kernel_ns)


def _copies(signature: Signature, layer: tuple[int, int, bool]) -> tuple[float, float]:
    """``(copies, bytes that they move)`` of one pass of one layer."""
    weight, given, bias = layer
    if len(signature.shapes) <= max(weight, given):
        return 0.0, 0.0
    elements = math.prod(signature.shapes[weight]) + FRESH * math.prod(signature.shapes[given])
    return 1 + bias + FRESH, BYTES * elements


def _operator_ns(line: Timeline) -> float:
    """What an elementwise operator costs the host that launches one kernel (median)."""
    ops, kernels = np.unique(line.kernel_op[line.kernel_work == ELEMENTWISE], return_counts=True)
    chosen = ops[(kernels == 1) & (ops >= 0)]
    if not len(chosen):
        return 0.0
    inside = np.isin(line.op, chosen)
    each = np.bincount(np.searchsorted(chosen, line.op[inside]), line.host_ns[inside], len(chosen))
    return float(np.median(each))
