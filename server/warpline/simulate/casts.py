"""The copies that autocast adds: the inputs of matrix products are cast to the lower precision.

A parameter is cast once a step (autocast caches the copy until its block ends). An activation is cast if a
product gets it in fp32, or if an operator that autocast runs in fp32 gets it in 16 bits. The backward pass
casts the gradient of each back. torch.amp documents all three. On the device a copy costs its bytes over the
bandwidth, on the host a few ordinary operators.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.simulate.device import Rates
from warpline.simulate.timeline import LOADER, SYNC, Timeline
from warpline.trace.columns import OP, Bools, Trace

#: Operators that autocast always runs in fp32: torch.amp, "CUDA Ops that can autocast to float32".
IN_FP32 = (
    *("aten::native_layer_norm", "aten::native_group_norm", "aten::_softmax", "aten::_log_softmax"),
    *("aten::nll_loss", "aten::mse_loss", "aten::pow", "aten::exp", "aten::log", "aten::norm"),
    *("aten::cumsum", "aten::prod", "aten::binary_cross_entropy", "aten::rsqrt", "aten::reciprocal"),
)
#: Bytes moved for an element that is read as fp32 and written in 16 bits, or the reverse.
BYTES = 6
#: The shortest time that any kernel takes.
FLOOR_NS = costs.value("least-kernel-ns")
#: Operators that one copy calls: ``to``, ``_to_copy``, ``empty_strided`` and ``copy_``. The backward pass
#: adds the engine's call and its node.
OPS, OPS_BACK = 4, 6
#: Products of a layer with its parameters: which arguments are (weight, input), and a bias.
_LAYERS = {"aten::addmm": (2, 1, True), "aten::mm": (1, 0, False), "aten::cudnn_convolution": (1, 0, False)}


def with_casts(trace: Trace, timeline: Timeline, products: Bools, rates: Rates) -> Timeline:
    """``timeline`` with the copies added to the launches of the forward operators that need them."""
    host_ns, kernel_ns = timeline.host_ns.copy(), timeline.kernel_ns.copy()
    cost_ns = (OPS + OPS_BACK) * _operator_ns(trace, timeline)
    for at, copies, elements in _copies(trace, timeline, products):
        segment = int(np.searchsorted(timeline.first, at, "right")) - 1
        host_ns[segment] += copies * cost_ns
        # Once in the forward pass, once for the gradients in the backward pass.
        kernel_ns[at] += 2 * max(copies * FLOOR_NS, BYTES * elements / rates.bytes_per_s * 1e9)
    return replace(timeline, host_ns=host_ns, kernel_ns=kernel_ns)


def _copies(trace: Trace, timeline: Timeline, products: Bools) -> list[tuple[int, int, float]]:
    """``(kernel, copies, elements)`` of each forward operator with inputs that autocast casts.

    A trace does not identify tensors. Each operator's input is assumed to be the previous operator's output.
    """
    found = []
    forward = np.flatnonzero(~timeline.kernel_backward & (timeline.kernel_op >= 0))
    # An operator that launches several kernels is represented by the first one.
    _, first = np.unique(timeline.kernel_op[forward], return_index=True)
    # ``short``: the last output is in 16 bits. ``given``: so was the last layer's input. Layers that directly
    # follow one another (query, key and value) share one input.
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
            short = False  # a residual sum: the other summand is fp32, so the result is as well
        after_layer = layer is not None
        if copies:
            found.append((at, int(copies), float(elements)))
    return found


def _largest(shapes: tuple[tuple[int, ...], ...]) -> float:
    return float(max((math.prod(shape) for shape in shapes), default=0))


def _operator_ns(trace: Trace, timeline: Timeline) -> float:
    """Mean host time of an operator in ns, without the Python code between operators: the casts of autocast
    and of autograd's engine run no Python.

    On a CPU this gives 5.4 us for a cast and its backward; 4 us were measured.
    """
    works = (timeline.kind != SYNC) & (timeline.kind != LOADER) & (timeline.op >= 0)
    begun = trace.host.start_ns[trace.host.kind == OP]
    low, high = trace.window_ns
    count = int(((begun >= low) & (begun < high)).sum())
    return float(timeline.host_ns[works].sum()) / count if count else 0.0
