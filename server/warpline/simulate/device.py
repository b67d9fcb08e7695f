"""How fast a device can be: operations a second by precision, and bytes a second.

What the runner measured (``Facts.peaks``) comes first; else the vendor's figures (dense, without
sparsity), of which real kernels reach about ``REACHED``. Sources: NVIDIA's data sheets of the H100/H200
(SXM), A100, L40S, L4, A10, V100 and T4.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpline.model.change import Precision
from warpline.trace.columns import Trace

REACHED = {"fp32": 0.75, "tf32": 0.6, "bf16": 0.6, "fp16": 0.6}
REACHED_BANDWIDTH = 0.8

_TERA = 1e12
#: name contained in the device's -> (fp32, tf32, bf16/fp16) TFLOP/s, bytes/s
_SHEETS = (
    ("H200", (67, 495, 989), 4.8e12),
    ("H100", (67, 495, 989), 3.35e12),
    ("A100", (19.5, 156, 312), 1.6e12),
    ("L40S", (91.6, 183, 362), 0.864e12),
    ("L4", (30.3, 60, 121), 0.3e12),
    ("A10", (31.2, 62.5, 125), 0.6e12),
    ("V100", (15.7, 15.7, 125), 0.9e12),
    ("T4", (8.1, 8.1, 65), 0.32e12),
)


@dataclass(frozen=True, slots=True)
class Rates:
    flops: dict[str, float]
    bytes_per_s: float


def rates(trace: Trace) -> Rates | None:
    """None for a device whose figures are neither measured nor known."""
    measured = trace.facts.peaks
    name = trace.manifest.device.name
    sheet = next((row for row in _SHEETS if row[0] in name), None)
    flops, bandwidth = {}, measured.get("bytes_per_s", 0.0)
    for at, precision in enumerate(("fp32", "tf32", "bf16", "fp16")):
        value = next((measured[key] for key in _keys(precision) if measured.get(key)), 0.0)
        if not value and sheet:
            value = sheet[1][min(at, 2)] * _TERA * REACHED[precision]
        if value:
            flops[precision] = value
    if not bandwidth and sheet:
        bandwidth = sheet[2] * REACHED_BANDWIDTH
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
