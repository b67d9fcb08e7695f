"""Peak rates of a device: operations per second by precision, and bytes per second.

These are the rates that the runner measured (``Facts.peaks``), else the data sheet's (dense, without
sparsity) times ``REACHED``, the share that real kernels reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpline.attribution.peaks import peaks_of
from warpline.model import costs
from warpline.trace.columns import Trace
from warpline.wire.precision import HALF, OF_DTYPE, Precision
from warpline.wire.run import Facts

REACHED: dict[Precision, float] = {
    "fp32": costs.value("reached-fp32"),
    "tf32": costs.value("reached-tf32"),
    "bf16": costs.value("reached-bf16"),
    "fp16": costs.value("reached-fp16"),
}
REACHED_BANDWIDTH = costs.value("reached-bandwidth")


@dataclass(frozen=True, slots=True)
class Rates:
    flops: dict[Precision, float]
    bytes_per_s: float


def rates(trace: Trace) -> Rates | None:
    """The device's peak rates, measured or from the table. None for a device without either."""
    measured = trace.facts.peaks
    sheet = peaks_of(trace.manifest.device.name, Facts())
    flops: dict[Precision, float] = {}
    bandwidth = measured.bytes_per_s or 0.0
    best = (sheet.fp32, sheet.tf32, sheet.half, sheet.half) if sheet else (0.0,) * 4
    reached = (measured.fp32, measured.tf32, measured.bf16, measured.fp16)
    for (precision, share), peak, value in zip(REACHED.items(), best, reached, strict=True):
        if found := value or peak * share:
            flops[precision] = found
    if not bandwidth and sheet:
        bandwidth = sheet.bytes_per_s * REACHED_BANDWIDTH
    return Rates(flops, bandwidth) if flops and bandwidth else None


def precision_of(dtype: str, allow_tf32: bool) -> Precision:
    """The rate that products of tensors of ``dtype`` (as the trace names it) run at."""
    return OF_DTYPE[dtype] if dtype in HALF else "tf32" if allow_tf32 else "fp32"
