"""How fast a device can be: operations a second by precision, and bytes a second.

What the runner measured (``Facts.peaks``) comes first; else the data sheet's figures (dense, without
sparsity), of which real kernels reach about ``REACHED``.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpline.attribution.peaks import peaks_of
from warpline.model.change import Precision
from warpline.trace.columns import Trace
from warpline.wire.run import Facts

REACHED = {"fp32": 0.75, "tf32": 0.6, "bf16": 0.6, "fp16": 0.6}
REACHED_BANDWIDTH = 0.8


@dataclass(frozen=True, slots=True)
class Rates:
    flops: dict[str, float]
    bytes_per_s: float


def rates(trace: Trace) -> Rates | None:
    """None for a device whose figures are neither measured nor known."""
    measured = trace.facts.peaks
    sheet = peaks_of(trace.manifest.device.name, Facts())
    flops, bandwidth = {}, measured.get("bytes_per_s", 0.0)
    best = (sheet.fp32, sheet.tf32, sheet.half, sheet.half) if sheet else (0.0,) * 4
    for precision, peak in zip(("fp32", "tf32", "bf16", "fp16"), best, strict=True):
        value = next((measured[key] for key in _keys(precision) if measured.get(key)), 0.0)
        if value := value or peak * REACHED[precision]:
            flops[precision] = value
    if not bandwidth and sheet:
        bandwidth = sheet.bytes_per_s * REACHED_BANDWIDTH
    return Rates(flops, bandwidth) if flops and bandwidth else None


def precision_of(dtype: str, allow_tf32: bool) -> Precision:
    """The rate that products of tensors of ``dtype`` (as the trace names it) run at."""
    if "BFloat16" in dtype:
        return "bf16"
    if "Half" in dtype:
        return "fp16"
    return "tf32" if allow_tf32 else "fp32"


def _keys(precision: str) -> tuple[str, ...]:
    long = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "tf32": "tf32"}[precision]
    return (precision, long, f"flops_{precision}", f"flops_{long}", f"{precision}_flops", f"{long}_flops")
