"""Which lines each kernel belongs to, and the kernels of each line.

A kernel belongs to the line of its launch. One that a compiler fused from several lines belongs to
all of them in equal parts (the trace cannot say more), and they are shown as a group. What a CUDA
graph replays has no launch of its own and stays unattributed, but the device was not idle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from warpline.attribution.place import BACKWARD, FORWARD, PHASES, Placed
from warpline.attribution.table import LineTable
from warpline.model.profile import Group, Kernel
from warpline.trace.columns import Floats, Ints, Trace

KINDS = ("kernel", "copy", "set", "communication")
MOST_KERNELS_A_LINE = 64


@dataclass(frozen=True, slots=True)
class Shares:
    """One row for each kernel and line it belongs to; weights of a kernel add up to 1."""

    kernel: Ints
    line: Ints
    phase: Ints
    weight: Floats
    group: Ints  # index into groups, -1: none
    groups: tuple[tuple[str, tuple[int, ...], bool], ...]  # kernel name, line numbers, backward


def shares(trace: Trace, table: LineTable, placed: Placed) -> Shares:
    kernels = trace.kernels
    launched = kernels.launch >= 0
    line = (
        np.where(launched & ~kernels.in_graph, placed.line[kernels.launch], 0)
        if len(placed.line)
        else kernels.launch * 0
    )
    phase = (
        np.where(launched, placed.phase[kernels.launch], FORWARD) if len(placed.phase) else kernels.launch * 0
    )
    fused, groups = fused_names(trace, table)
    of_kernel = fused[kernels.name] if len(kernels) else np.zeros(0, np.int64)
    plain = np.flatnonzero(of_kernel < 0)
    rows = [(plain, line[plain], phase[plain], np.ones(len(plain)), np.full(len(plain), -1))]
    for at, (_, members, backward) in enumerate(groups):
        mine = np.flatnonzero(of_kernel == at)
        each = np.repeat(mine, len(members))
        its_phase = np.where(phase[each] == FORWARD, BACKWARD if backward else FORWARD, phase[each])
        rows.append((
            each, np.tile(members, len(mine)), its_phase,
            np.full(len(each), 1 / len(members)), np.full(len(each), at),
        ))  # fmt: skip
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    return Shares(*columns, groups)


def fused_names(trace: Trace, table: LineTable) -> tuple[Ints, tuple[tuple[str, tuple[int, ...], bool], ...]]:
    """For each of ``Trace.names`` its group (-1: none), and the groups."""
    known = {(file, line): at for at, (file, line) in enumerate(zip(table.file, table.line, strict=True))}
    group = np.full(max(1, len(trace.names)), -1, np.int64)
    names = {name: at for at, name in enumerate(trace.names)}
    groups = []
    for compiled in trace.facts.compiled_kernels:
        lines = dict.fromkeys(known[file, line] for file, line, _ in compiled.lines if (file, line) in known)
        if compiled.name in names and lines and group[names[compiled.name]] < 0:
            group[names[compiled.name]] = len(groups)
            groups.append((compiled.name, tuple(lines), compiled.backward))
    return group, tuple(groups)


def group_table(table: LineTable, of: Shares, kernel_ms: Floats) -> tuple[Group, ...]:
    """The groups as the profile has them; ``device_ms`` of all their launches together."""
    time = np.zeros(len(of.groups))
    inside = of.group >= 0
    np.add.at(time, of.group[inside], kernel_ms[of.kernel[inside]] * of.weight[inside])
    return tuple(
        Group(name, tuple((table.file[line], table.line[line]) for line in lines), float(ms), backward)
        for (name, lines, backward), ms in zip(of.groups, time.tolist(), strict=True)
    )


#: Libraries name what they use: "tensorop", "16816" and "1688" are shapes of mma instructions,
#: "hmma"/"imma"/"wgmma"/"xmma" the instructions or their wrapper, "sm90_xmma", "cutlass_80_tensorop…".
_TENSOR = re.compile(
    r"tensorop|hmma|imma|wgmma|xmma|_mma_|mma_sync|16816|s1688|h884|s884|16832|tcgen05|flash_fwd|flash_bwd|fmha|nvjet",
    re.IGNORECASE,
)
#: Matrix kernels that say they do not: the plain FP32 and FP64 units.
_NO_TENSOR = re.compile(
    r"simt|sgemm|dgemm|_ffma_|gemv|gemmk1|elementwise|reduce_kernel|vectorized|softmax|layer_norm",
    re.IGNORECASE,
)


def tensor_cores(name: str) -> bool | None:
    """Whether a kernel of this name runs on tensor cores; None when the name does not tell."""
    if _TENSOR.search(name):
        return True
    return False if _NO_TENSOR.search(name) else None


def kernel_table(
    trace: Trace, of: Shares, kernel_ms: Floats, window: tuple[int, int]
) -> dict[int, list[Kernel]]:
    """Kernels by line number, longest first; counts and times per step."""
    kernels = trace.kernels
    seen = (kernels.end_ns[of.kernel] > window[0]) & (kernels.start_ns[of.kernel] < window[1])
    rows = of.kernel[seen]
    columns = np.stack([
        of.line[seen], of.phase[seen], kernels.name[rows], kernels.kind[rows], kernels.shape[rows],
    ])  # fmt: skip
    keys, inverse = np.unique(columns, axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    size = keys.shape[1]
    count = np.bincount(inverse, weights=of.weight[seen], minlength=size) / trace.steps
    time = np.bincount(inverse, weights=kernel_ms[rows] * of.weight[seen], minlength=size)
    moved = np.bincount(inverse, weights=kernels.bytes[rows] * of.weight[seen], minlength=size) / trace.steps
    out: dict[int, list[Kernel]] = {}
    for at in np.argsort(-time, kind="stable").tolist():
        line, phase, name, kind, shape = keys[:, at].tolist()
        mine = out.setdefault(line, [])
        if len(mine) < MOST_KERNELS_A_LINE:
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
                )  # fmt: skip
            )
    return out
