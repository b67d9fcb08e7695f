"""channels_last: without cuDNN's layout conversions, and with the time of its batch norms in that layout."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from warpline.model.change import ChannelsLast
from warpline.simulate.changes import Changed, without
from warpline.simulate.device import Rates
from warpline.simulate.timeline import Timeline
from warpline.trace.columns import Bools, Trace

#: How often a batch norm of cuDNN's reads or writes a tensor like its input: forward it is read for the
#: statistics and again to be normalised, then written; backward it is read twice, and so is the gradient,
#: before one is written. Each channel's pixels lie apart channels first: that the recorded kernels took 1.6
#: and 2.3 times as long. The channels of a pixel lie side by side channels last, where each read is whole.
#: PyTorch's own norms (``native_batch_norm``, which bfloat16 gets) reach no bandwidth in either layout.
PASSES = {"aten::cudnn_batch_norm": 3, "aten::cudnn_batch_norm_backward": 5}
_BYTES = {"float": 4, "c10::Half": 2, "c10::BFloat16": 2}


def channels_last(
    trace: Trace, timeline: Timeline, change: ChannelsLast, changed: Changed, rates: Rates | None
) -> Timeline:
    """``timeline`` without conversions at ``change.places``, and with its batch norms at the bandwidth.

    A norm that is quicker already stays; so do all where the device's rates are unknown.
    """
    found = (
        timeline
        if rates is None
        else _norms(trace, timeline, changed.at(timeline.kernel_place, change.places), rates)
    )
    return without(found, changed.turned(timeline, change.places))


def _norms(trace: Trace, timeline: Timeline, here: Bools, rates: Rates) -> Timeline:
    kernel_ns = timeline.kernel_ns.copy()
    passes = np.array([PASSES.get(name, 0) for name in trace.names])
    norms = here & (timeline.kernel_op >= 0)
    norms[norms] = passes[trace.host.name[timeline.kernel_op[norms]]] > 0
    for op in np.unique(timeline.kernel_op[norms]).tolist():
        rows, signature = norms & (timeline.kernel_op == op), trace.signatures[int(trace.host.signature[op])]
        if signature.shapes and signature.dtypes:
            moved = math.prod(signature.shapes[0]) * _BYTES.get(signature.dtypes[0], 4)
            least_ns = passes[trace.host.name[op]] * moved / rates.bytes_per_s * 1e9
            kernel_ns[rows] *= min(1.0, least_ns / kernel_ns[rows].sum())
    return replace(timeline, kernel_ns=kernel_ns)
