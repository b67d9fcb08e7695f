"""The flags as the script left them."""

from __future__ import annotations

from types import ModuleType

from ....wire.facts import Flags
from ....wire.processors import cores


def flags(torch: ModuleType) -> Flags:
    """torch's precision and cuDNN flags, the cores that the process may use, and torch's threads."""
    matmul, convolution = _tf32(torch)
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # the script set ``fp32_precision``: the older way to ask is closed then
        precision = "high" if matmul else "highest"
    return Flags(
        allow_tf32=matmul,
        float32_matmul_precision=precision,
        cudnn_allow_tf32=convolution,
        cudnn_benchmark=torch.backends.cudnn.benchmark,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        anomaly_mode=torch.is_anomaly_enabled(),
        cpu_count=cores(),
        threads=torch.get_num_threads(),
    )


def _tf32(torch: ModuleType) -> tuple[bool, bool]:
    """Whether float32 matrix products may run in TF32, and whether convolutions may."""
    backends = torch.backends
    if hasattr(backends.cuda.matmul, "fp32_precision"):  # from torch 2.9 on; says what the older flags say
        return backends.cuda.matmul.fp32_precision == "tf32", backends.cudnn.conv.fp32_precision == "tf32"
    return backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
