"""The copies that autocast adds: what goes into a product is copied to the lower precision.

A parameter is copied once a step (autocast keeps the copy until its block ends), an activation when a
product takes it in fp32, or when an operator that autocast computes in fp32 takes it in 16 bits; the
backward pass copies the gradient of each back. torch.amp documents all three. What a copy costs is
bytes over the device's bandwidth there, and on the host a few ordinary operators.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.simulate.device import Rates
from warpline.simulate.timeline import LOADER, SYNC, Timeline
from warpline.trace.columns import OP, Bools, Trace

#: What autocast computes in fp32 whatever comes in: torch.amp, "CUDA Ops that can autocast to float32".
IN_FP32 = (
    *("aten::native_layer_norm", "aten::native_group_norm", "aten::_softmax", "aten::_log_softmax"),
    *("aten::nll_loss", "aten::mse_loss", "aten::pow", "aten::exp", "aten::log", "aten::norm"),
    *("aten::cumsum", "aten::prod", "aten::binary_cross_entropy", "aten::rsqrt", "aten::reciprocal"),
)
#: Bytes of an element that is read as fp32 and written in 16 bits, or the other way round.
BYTES = 6
#: No kernel is shorter, whatever it computes.
FLOOR_NS = costs.value("least-kernel-ns")
#: Operators that one copy is made of: ``to``, ``_to_copy``, ``empty_strided`` and ``copy_``; on the way
#: back the engine's call and its node as well.
OPS, OPS_BACK = 4, 6
#: Products of a layer with its parameters: which arguments are (weight, input), and a bias.
_LAYERS = {"aten::addmm": (2, 1, True), "aten::mm": (1, 0, False), "aten::cudnn_convolution": (1, 0, False)}


def with_casts(trace: Trace, timeline: Timeline, products: Bools, rates: Rates) -> Timeline:
    """``timeline`` with the copies added to the launches of the forward operators that ask for them."""
    host_ns, kernel_ns = timeline.host_ns.copy(), timeline.kernel_ns.copy()
    cost_ns = (OPS + OPS_BACK) * _operator_ns(trace, timeline)
    for at, copies, elements in _copies(trace, timeline, products):
        segment = int(np.searchsorted(timeline.first, at, "right")) - 1
        host_ns[segment] += copies * cost_ns
        # Once on the way there, once for the gradients on the way back.
        kernel_ns[at] += 2 * max(copies * FLOOR_NS, BYTES * elements / rates.bytes_per_s * 1e9)
    return replace(timeline, host_ns=host_ns, kernel_ns=kernel_ns)


def _copies(trace: Trace, timeline: Timeline, products: Bools) -> list[tuple[int, int, float]]:
    """``(kernel, copies, elements)`` of each forward operator that something is copied for.

    Which tensor an operator takes is not in a trace; what the operator before it made is taken for it.
    """
    found = []
    forward = np.flatnonzero(~timeline.kernel_backward & (timeline.kernel_op >= 0))
    # Of an operator that launches several kernels the first stands for it.
    _, first = np.unique(timeline.kernel_op[forward], return_index=True)
    # The input of a layer, and whether that was in 16 bits: layers that follow one another with nothing
    # between (query, key and value) take the same.
    short, given, after_layer = False, False, False
    for at in forward[np.sort(first)].tolist():
        op = int(timeline.kernel_op[at])
        name = trace.names[int(trace.host.name[op])]
        shapes = trace.signatures[int(trace.host.signature[op])].shapes
        layer = _LAYERS.get(name) if products[at] else None
        copies, elements = 0, 0.0
        if layer is not None and len(shapes) > max(layer[:2]):
            given = given if after_layer else short
            copies, elements = 1 + layer[2] + (not given), math.prod(shapes[layer[0]])
            elements += 0.0 if given else math.prod(shapes[layer[1]])
            short = True
        elif products[at]:
            copies, elements = (0, 0.0) if short else (1, _largest(shapes))
            short = True
        elif name.startswith(IN_FP32):
            copies, elements = (1, _largest(shapes)) if short else (0, 0.0)
            short = False
        elif len(shapes) > 1 and shapes[0] and shapes[0] == shapes[1]:
            short = False  # a sum with what went past the product, in fp32: so is the result
        after_layer = layer is not None
        if copies:
            found.append((at, int(copies), float(elements)))
    return found


def _largest(shapes: tuple[tuple[int, ...], ...]) -> float:
    return float(max((math.prod(shape) for shape in shapes), default=0))


def _operator_ns(trace: Trace, timeline: Timeline) -> float:
    """What an operator costs the host on average, without the Python between: autocast and the engine copy.

    On a CPU that says 5.4 us for a copy there and back, which was timed as 4.
    """
    works = (timeline.kind != SYNC) & (timeline.kind != LOADER) & (timeline.op >= 0)
    begun = trace.host.start_ns[trace.host.kind == OP]
    low, high = trace.window_ns
    count = int(((begun >= low) & (begun < high)).sum())
    return float(timeline.host_ns[works].sum()) / count if count else 0.0
