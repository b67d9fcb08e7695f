"""The capabilities that rules and stages ask for."""

from __future__ import annotations

from typing import Literal

Capability = Literal[
    "line costs",  # what the profiler saw is the time that lines take: kernels, or operators on a CPU
    "kernels",  # the profiler records kernels, and the host works ahead of them
    "tensor cores",  # NVIDIA's, by CUDA compute capability: TF32, sizes in multiples of 8, layouts
    "cudnn",  # convolutions are cuDNN's, which chooses among algorithms
    "occupancy",  # blocks and multiprocessors are known, with CUDA's limits
    "replacements",  # replacements can be tried and timed: capture/runner/probing
    "nsight",  # Nsight Compute looks inside kernels
]
