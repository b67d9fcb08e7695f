"""channels_last: removes cuDNN's layout conversions and shortens batch norms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from warpline.model.change import ChannelsLast
from warpline.simulate.changes import Changed
from warpline.simulate.device import Rates
from warpline.simulate.timeline import Timeline, without
from warpline.trace.columns import Bools, Trace

#: How often a batch norm reads or writes a tensor of its input's size. Forward: it reads the input for the
#: statistics, reads it again to normalize it, and writes the output. Backward: it reads the input and the
#: gradient twice each and writes one gradient. cuDNN's recorded kernels took 1.6 (forward) and 2.3 (backward)
#: times as long in NCHW as these bytes need, since the values of a channel lie apart. In channels_last
#: the channels of a pixel are contiguous and reads are coalesced. PyTorch's own (``native_batch_norm``, used
#: for bfloat16) took up to 29 times as long in NCHW, and in channels_last 3.5 (forward) and 1.6 (backward)
#: times as long on an H200 (tests/captures/resnet_channels_last).
PASSES = {
    "aten::cudnn_batch_norm": 3.0,
    "aten::cudnn_batch_norm_backward": 5.0,
    "aten::native_batch_norm": 3 * 3.5,
    "aten::native_batch_norm_backward": 5 * 1.6,
}
_BYTES = {"float": 4, "c10::Half": 2, "c10::BFloat16": 2}


def channels_last(
    trace: Trace, timeline: Timeline, change: ChannelsLast, changed: Changed, rates: Rates | None
) -> Timeline:
    """``timeline`` without layout conversions at ``change.places``, and with batch norms that run at the
    device's bandwidth, as far as they can.

    A norm that is already faster does not change. None changes if the device's rates are unknown.
    """
    found = (
        timeline
        if rates is None
        else _norms(trace, timeline, changed.at(timeline.kernel_place, change.places), rates)
    )
    return without(found, changed.turned(timeline, change.places))


def _norms(trace: Trace, timeline: Timeline, here: Bools, rates: Rates) -> Timeline:
    kernel_ns = timeline.kernel_ns.copy()
    passes = np.array([PASSES.get(name, 0.0) for name in trace.names])
    norms = here & (timeline.kernel_op >= 0)
    norms[norms] = passes[trace.host.name[timeline.kernel_op[norms]]] > 0
    for op in np.unique(timeline.kernel_op[norms]).tolist():
        rows, signature = norms & (timeline.kernel_op == op), trace.signatures[int(trace.host.signature[op])]
        if signature.shapes and signature.dtypes:
            moved = math.prod(signature.shapes[0]) * _BYTES.get(signature.dtypes[0], 4)
            least_ns = passes[trace.host.name[op]] * moved / rates.bytes_per_s * 1e9
            kernel_ns[rows] *= min(1.0, least_ns / kernel_ns[rows].sum())
    return replace(timeline, kernel_ns=kernel_ns)
