"""The kernels of each line, and whether their names show that they use tensor cores."""

from __future__ import annotations

import re

import numpy as np

from warpline.attribution.ops import grouped
from warpline.attribution.place import PHASES
from warpline.attribution.scene import Scene
from warpline.model.profile import Kernel
from warpline.trace.columns import Floats

KINDS = ("kernel", "copy", "set", "communication")
MOST_KERNELS_A_LINE = 64

#: Names of kernels without tensor cores: matrix kernels on the plain FP32 and FP64 units ("ffma" is their
#: instruction; "sgemm" and "dgemm" are older names), and kernels that prepare or add up for a matrix kernel
#: and have its name in theirs.
_PLAIN = re.compile(
    r"_ffma_|sgemm|dgemm|gemv|gemmk1|gemmsn|splitk_?reduce|reducesplitk|init_device_workspace", re.IGNORECASE
)
#: Names of kernels with tensor cores: "tensorop"; "16816" and "1688", shapes of mma instructions;
#: "hmma"/"imma"/"wgmma"/"xmma", the instructions or their wrapper ("sm90_xmma", "cutlass_80_tensorop…").
_TENSOR = re.compile(
    r"tensorop|hmma|imma|wgmma|xmma|_mma_|mma_sync|16816|s1688|h884|s884|16832|tcgen05|flash_fwd|flash_bwd|fmha|nvjet",
    re.IGNORECASE,
)
_NO_TENSOR = re.compile(r"simt|elementwise|reduce_kernel|vectorized|softmax|layer_norm", re.IGNORECASE)


def tensor_cores(name: str) -> bool | None:
    """Whether a kernel of this name runs on tensor cores; None when the name does not tell."""
    if _PLAIN.search(name):
        return False
    if _TENSOR.search(name):
        return True
    return False if _NO_TENSOR.search(name) else None


def kernel_table(scene: Scene, kernel_ms: Floats) -> dict[int, list[Kernel]]:
    """Kernels by line number, longest first; counts, times and bytes per step."""
    trace, kernels, of = scene.trace, scene.trace.kernels, scene.shares
    seen = scene.inside(kernels.start_ns[of.kernel], kernels.end_ns[of.kernel])
    rows = of.kernel[seen]
    keys, inverse = grouped(
        (of.line[seen], of.phase[seen], kernels.name[rows], kernels.kind[rows], kernels.shape[rows])
    )
    size = keys.shape[1]
    count = np.bincount(inverse, weights=of.weight[seen], minlength=size) / trace.steps
    time = np.bincount(inverse, weights=kernel_ms[rows] * of.weight[seen], minlength=size)
    moved = np.bincount(inverse, weights=kernels.bytes[rows] * of.weight[seen], minlength=size) / trace.steps
    out: dict[int, list[Kernel]] = {}
    for at in np.argsort(-time, kind="stable").tolist():
        line, phase, name, kind, shape = keys[:, at].tolist()
        mine = out.setdefault(line, [])
        if len(mine) < MOST_KERNELS_A_LINE or not line:  # line 0: kernels without a line
            launch = trace.launch_shapes[shape]
            mine.append(
                Kernel(
                    name=trace.names[name],
                    phase=PHASES[phase],
                    count=float(count[at]),
                    device_ms=float(time[at]),
                    grid=launch.grid,
                    block=launch.block,
                    registers=launch.registers,
                    shared_bytes=launch.shared_bytes,
                    occupancy_percent=launch.occupancy_percent,
                    bytes=float(moved[at]) if KINDS[kind] in ("copy", "set") else None,
                    kind=KINDS[kind],
                    tensor_cores=tensor_cores(trace.names[name]) if KINDS[kind] == "kernel" else None,
                )
            )
    return out
