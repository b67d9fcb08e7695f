"""Element types by their names in a trace, and whether products of float32 may use TF32."""

from __future__ import annotations

from warpline.wire.facts import Flags
from warpline.wire.precision import TF32_SETTINGS

ELEMENT_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "long": 8,
    "short": 2, "short int": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
}  # fmt: skip


def tf32_allowed(name: str, flags: Flags) -> bool:
    """Whether the operator ``name`` may compute float32 inputs in TF32."""
    if "conv" in name:
        return flags.cudnn_allow_tf32 is not False  # torch's default
    if "attention" in name:
        return False  # its kernels make each product of float32 of three in TF32, whatever is set
    return bool(flags.allow_tf32) or flags.float32_matmul_precision in TF32_SETTINGS
