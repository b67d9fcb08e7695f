"""How many blocks of a kernel a multiprocessor holds at once, from what a plain trace says.

Limits per multiprocessor by compute capability: CUDA C++ Programming Guide, table of technical
specifications. Registers are given out by warp in pieces of 256, shared memory in pieces of 1 KiB.
"""

from __future__ import annotations

import math

from warpline.model.profile import Kernel

#: capability -> (threads, blocks, shared memory in KiB); the nearest one below counts.
_LIMITS = {
    (7, 0): (2048, 32, 96),
    (7, 5): (1024, 16, 64),
    (8, 0): (2048, 32, 164),
    (8, 6): (1536, 16, 100),
    (8, 9): (1536, 24, 100),
    (9, 0): (2048, 32, 228),
    (10, 0): (2048, 32, 228),
    (12, 0): (1536, 24, 100),
}
_REGISTERS = 65536
_WARP = 32


def blocks_per_multiprocessor(kernel: Kernel, capability: tuple[int, int]) -> int | None:
    """How many blocks run on a multiprocessor at once. None for an unknown device or a trace without
    registers and shared memory."""
    known = [limit for limit in _LIMITS if limit <= tuple(capability)]
    if kernel.block is None or kernel.registers is None or kernel.shared_bytes is None or not known:
        return None
    threads, blocks, shared_kib = _LIMITS[max(known)]
    warps = math.ceil(math.prod(kernel.block) / _WARP)
    per_warp = math.ceil(max(kernel.registers, 1) * _WARP / 256) * 256
    # The runtime keeps a kibibyte of each block's shared memory for itself.
    shared = math.ceil(kernel.shared_bytes / 1024) + 1
    return max(
        1, min(blocks, threads // (warps * _WARP), _REGISTERS // (per_warp * warps), shared_kib // shared)
    )


def waves(kernel: Kernel, processors: int, capability: tuple[int, int]) -> float | None:
    """How often the device is filled by the blocks of one launch, 0.5 for half a device; None when the
    trace does not say, or for what is not a kernel."""
    resident = blocks_per_multiprocessor(kernel, capability)
    if kernel.kind != "kernel" or not kernel.grid or resident is None:
        return None
    return math.prod(kernel.grid) / (processors * resident)
