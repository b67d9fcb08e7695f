"""Peak rates of devices, from data sheets (dense, without sparsity)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpline.wire.run import Facts


@dataclass(frozen=True, slots=True)
class Peaks:
    """Operations per second by kind of arithmetic, and memory bytes per second."""

    fp32: float
    tf32: float
    half: float  # FP16 and BF16 on tensor cores
    fp64: float
    bytes_per_s: float
    source: str = "data sheet"


T = 1e12
#: By words of the device's name; the longest match wins ("H100 PCIe" before "H100").
KNOWN: dict[str, Peaks] = {
    "B200": Peaks(80 * T, 1100 * T, 2250 * T, 40 * T, 8.0 * T),
    "GB200": Peaks(80 * T, 1250 * T, 2500 * T, 40 * T, 8.0 * T),
    "H200": Peaks(67 * T, 494.7 * T, 989.4 * T, 34 * T, 4.8 * T),
    "H200 NVL": Peaks(60 * T, 417.5 * T, 835 * T, 30 * T, 4.8 * T),
    "GH200": Peaks(67 * T, 494.7 * T, 989.4 * T, 34 * T, 4.0 * T),
    "H100": Peaks(67 * T, 494.7 * T, 989.4 * T, 34 * T, 3.35 * T),
    "H100 PCIe": Peaks(51 * T, 378 * T, 756 * T, 26 * T, 2.0 * T),
    "H100 NVL": Peaks(60 * T, 417.5 * T, 835 * T, 30 * T, 3.9 * T),
    "H20": Peaks(44 * T, 74 * T, 148 * T, 1 * T, 4.0 * T),
    "A100": Peaks(19.5 * T, 156 * T, 312 * T, 9.7 * T, 1.555 * T),
    "A100-SXM4-80GB": Peaks(19.5 * T, 156 * T, 312 * T, 9.7 * T, 2.039 * T),
    "A100 80GB PCIe": Peaks(19.5 * T, 156 * T, 312 * T, 9.7 * T, 1.935 * T),
    "A40": Peaks(37.4 * T, 74.8 * T, 149.7 * T, 0.58 * T, 0.696 * T),
    "A30": Peaks(10.3 * T, 82 * T, 165 * T, 5.2 * T, 0.933 * T),
    "A10": Peaks(31.2 * T, 62.5 * T, 125 * T, 0.97 * T, 0.6 * T),
    "A10G": Peaks(35 * T, 35 * T, 70 * T, 1.1 * T, 0.6 * T),
    "L40S": Peaks(91.6 * T, 183 * T, 362 * T, 1.4 * T, 0.864 * T),
    "L40": Peaks(90.5 * T, 90.5 * T, 181 * T, 1.4 * T, 0.864 * T),
    "L4": Peaks(30.3 * T, 60 * T, 121 * T, 0.47 * T, 0.3 * T),
    "V100": Peaks(15.7 * T, 15.7 * T, 125 * T, 7.8 * T, 0.9 * T),
    "T4": Peaks(8.1 * T, 8.1 * T, 65 * T, 0.25 * T, 0.32 * T),
    "RTX 5090": Peaks(104.8 * T, 104.8 * T, 209.5 * T, 1.64 * T, 1.792 * T),
    "RTX 4090": Peaks(82.6 * T, 82.6 * T, 165.2 * T, 1.29 * T, 1.008 * T),
    "RTX 4080": Peaks(48.7 * T, 48.7 * T, 97.5 * T, 0.76 * T, 0.717 * T),
    "RTX 4070": Peaks(29.1 * T, 29.1 * T, 58.3 * T, 0.46 * T, 0.504 * T),
    "RTX 3090": Peaks(35.6 * T, 35.6 * T, 71 * T, 0.56 * T, 0.936 * T),
    "RTX 3080": Peaks(29.8 * T, 29.8 * T, 59.5 * T, 0.47 * T, 0.76 * T),
    "RTX A6000": Peaks(38.7 * T, 77.4 * T, 154.8 * T, 0.6 * T, 0.768 * T),
    "RTX 6000 Ada": Peaks(91.1 * T, 182.1 * T, 364.2 * T, 1.4 * T, 0.96 * T),
}


#: Words after a name that make it a different device, or a part of one (MIG).
_ANOTHER = re.compile(r"\b(ti|super|laptop|mobile|max-q|d|mig)\b", re.IGNORECASE)


def peaks_of(device_name: str, facts: Facts) -> Peaks | None:
    """The data sheet's peaks, else those measured in the run; None for an unknown device."""
    names = [
        name for name in KNOWN if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", device_name, re.IGNORECASE)
    ]
    if names and not _ANOTHER.search(device_name):
        return KNOWN[max(names, key=len)]
    measured = facts.peaks
    fp32 = measured.fp32
    if measured.bytes_per_s and fp32:
        return Peaks(
            fp32, measured.tf32 or fp32, measured.bf16 or fp32, measured.fp64 or fp32 / 2,
            measured.bytes_per_s, "measured",
        )  # fmt: skip
    return None
