"""Matrix products in another precision, with the casts and the narrower elementwise kernels of autocast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.model.change import MatmulRate, Operator, PadProducts
from warpline.model.dtypes import tf32_allowed
from warpline.simulate.casts import FLOOR_NS, IN_FP32, with_casts
from warpline.simulate.changes import Changed
from warpline.simulate.device import Rates, precision_of
from warpline.simulate.timeline import Timeline
from warpline.simulate.work import ELEMENTWISE, PRODUCT, product_size
from warpline.trace.columns import Bools, Floats, Trace
from warpline.wire.precision import BYTES

#: Share of their time that elementwise kernels take under autocast. More than half, since residual sums and
#: parameters stay in fp32, and kernels that move half the bytes do not take half the time: in the recorded
#: pair those took 0.74 (0.52 to 0.86).
HALF_BYTES = costs.value("autocast-bytes")


def at_precision(
    trace: Trace, timeline: Timeline, change: MatmulRate, changed: Changed, rates: Rates | None
) -> Timeline | None:
    """``timeline`` with its products in ``change.precision``; None if the device's rates are unknown."""
    on_gpu = timeline.has_kernels
    tried = dict(change.tried)
    if not on_gpu:
        if change.factor is None:
            return None
        products = (timeline.work == PRODUCT) & changed.at(timeline.place, change.places)
        return replace(
            timeline, host_ns=np.where(products, timeline.host_ns / change.factor, timeline.host_ns)
        )
    here = changed.at(timeline.kernel_place, change.places)
    products = here & (timeline.kernel_work == PRODUCT)
    if change.factor is not None:
        kernel = np.where(products, timeline.kernel_ns / change.factor, timeline.kernel_ns)
    elif tried:
        kernel = _as_tried(trace, timeline, products, tried)
    elif rates is None or change.precision not in rates.flops:
        return None
    else:
        kernel = _by_rate(trace, timeline, products, change, rates)
    if change.elementwise:
        left = np.where(here, HALF_BYTES, 1.0)
        moved = (timeline.kernel_work == ELEMENTWISE) & ~_in_fp32(trace, timeline)
        for place, share in change.between:
            known = changed.at(timeline.kernel_place, (place,))
            left[known] = 1 - (1 - HALF_BYTES) * (1 - share) / 0.5
            moved |= known & _copied(trace, timeline)
        kernel = np.where(moved, np.maximum(kernel * left, FLOOR_NS), kernel)
    kernel = np.minimum(kernel, timeline.kernel_ns)
    found = replace(timeline, kernel_ns=kernel)
    if rates is None or not change.elementwise or change.weights:
        return found
    return with_casts(trace, found, products, rates)


def padded(trace: Trace, timeline: Timeline, change: PadProducts, changed: Changed) -> Timeline:
    """``timeline`` with its products of that size padded."""
    here = changed.at(timeline.kernel_place, change.places) & (timeline.kernel_work == PRODUCT)
    of_size = [
        op
        for op in np.unique(timeline.kernel_op[here]).tolist()
        if any(change.size in shape for shape in trace.signatures[int(trace.host.signature[op])].shapes)
    ]
    left = np.where(here & np.isin(timeline.kernel_op, of_size), change.left, 1.0)
    return replace(timeline, kernel_ns=timeline.kernel_ns * left)


def _in_fp32(trace: Trace, timeline: Timeline) -> Bools:
    of_name = trace.names.mask(*IN_FP32)
    found: Bools = (timeline.kernel_op >= 0) & of_name[trace.host.name[timeline.kernel_op]]
    return found


def _copied(trace: Trace, timeline: Timeline) -> Bools:
    """Kernels that copy a tensor on the device."""
    copies = trace.names.mask("aten::copy_")
    within = ~trace.names.containing("HtoD") & ~trace.names.containing("DtoH")
    found: Bools = (timeline.kernel_op >= 0) & copies[trace.host.name[timeline.kernel_op]]
    return found & within[timeline.kernel_name]


def _as_tried(trace: Trace, timeline: Timeline, products: Bools, tried: Mapping[Operator, float]) -> Floats:
    """Scale each product that was tried by its measured share, and the others by the mean share of those,
    weighted by their present time."""
    factor = np.full(len(timeline.kernel_ns), np.nan)
    for op in np.unique(timeline.kernel_op[products]).tolist():
        signature = trace.signatures[int(trace.host.signature[op])]
        key = (trace.names[int(trace.host.name[op])], signature.shapes, signature.strides)
        if key in tried:
            factor[products & (timeline.kernel_op == op)] = tried[key]
    known = products & ~np.isnan(factor)
    spent = float(timeline.kernel_ns[known].sum())
    usual = float((timeline.kernel_ns * factor)[known].sum()) / spent if spent else 1.0
    found: Floats = timeline.kernel_ns * np.where(products, np.where(known, factor, usual), 1.0)
    return found


def _by_rate(trace: Trace, timeline: Timeline, products: Bools, change: MatmulRate, rates: Rates) -> Floats:
    """Each product reaches the same share of the new rate as of the present one. It takes at least the time
    that its bytes need.
    """
    kernel: Floats = timeline.kernel_ns.copy()
    host = trace.host
    for at in np.flatnonzero(products).tolist():
        op = int(timeline.kernel_op[at])
        signature = trace.signatures[int(host.signature[op])]
        dtype = next((one for one in signature.dtypes if "Scalar" not in one and one), "float")
        name = trace.names[int(host.name[op])]
        now = rates.flops.get(precision_of(dtype, tf32_allowed(name, trace.facts.flags)))
        if not now:
            continue
        ratio = rates.flops[change.precision] / now
        floor = FLOOR_NS
        size = product_size(name, signature)
        if size is not None:
            floor = max(floor, size[1] * BYTES[change.precision] / rates.bytes_per_s * 1e9)
        kernel[at] = max(kernel[at] / ratio, floor)
    return kernel
