"""The last wave of a kernel's blocks fills only part of the device.

## What it does

Computes the number of waves of the user's own costly kernels (Triton functions, CUDA in a Python file)
from grid, block, registers and shared memory. Finds kernels with a few waves whose last wave is nearly
empty. The user cannot change the grid of a library's kernels, so they are not reported.

## Why is this slow

A wave is the number of blocks that a device runs at a time. A last wave of a few blocks takes as long
as a full wave, while most of the device is idle.

## Example

```python
import triton

@triton.jit
def softmax(x_ptr):
    ...

softmax[(rows,)](x)
#^ found; cost device_ms=4
#^ kernel softmax count=2 device_ms=4 grid=(136,1,1) block=(256,1,1) registers=255 shared_bytes=100000
```

## Use instead

Nothing is edited. Choose block sizes or problem sizes so that the number of blocks is a multiple of the
wave size, or launch one program per free slot, each with a loop (a persistent kernel).

## Fix safety

No edit is offered.

## References

- [Matrix multiplication background: wave quantization](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#wave-quant)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from warpline.model.kernel_name import readable
from warpline.model.profile import Kernel
from warpline.rulekit import Context, Draft, Rule, count, percent
from warpline.rulekit.saving import less_device_time
from warpline.rulekit.triton import is_own

#: A kernel shorter than this is not what its waves make slow.
_LONG_MS = 0.05
#: The share of the kernel's time that a partial wave may cost: Nsight Compute's threshold.
_TAIL = 0.2
#: What a multiprocessor holds: capability -> (threads, blocks, shared memory in KiB); the nearest one below
#: counts. From the CUDA C++ Programming Guide, table of technical specifications. Registers are given out by
#: warp in pieces of 256, shared memory in pieces of 1 KiB.
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


class TailWave(Rule):
    area = "kernels"
    tags = ("kernel",)
    severity = "information"
    needs = ("kernels", "occupancy")

    def find(self, context: Context) -> Iterator[Draft]:
        processors, capability = context.device.multiprocessors, context.device.capability
        if not processors or capability is None:
            if context.profile.lines:
                context.note("tail-wave: the device's number of multiprocessors is unknown")
            return
        for cost in context.profile.lines:
            tails = [
                (kernel, number)
                for kernel in cost.kernels
                if (number := _waves(kernel, processors, capability)) and is_own(context, kernel)
            ]
            # One finding a line: of its costliest kernel.
            for kernel, number in sorted(tails, key=lambda entry: -entry[0].device_ms)[:1]:
                whole = math.floor(number)
                part = number - whole
                spent = min(kernel.device_ms, cost.step_ms)
                saving = spent * (1 - part) / (whole + 1)
                yield context.draft(
                    cost.place,
                    f"The kernel `{readable(kernel.name)}` runs in {{waves}} waves and takes {{spent}} a "
                    "step ({share}). During the last wave, {idle} of the device is idle.",
                    {
                        "waves": count("waves", round(number, 2), "waves"),
                        **context.spent("kernel", spent),
                        "idle": percent("idle in the last wave", 100 * (1 - part), "device"),
                    },
                    cost_ms=spent,
                    saving_ms=saving,
                    change=less_device_time([cost], saving),
                )


def _waves(kernel: Kernel, processors: int, capability: tuple[int, int]) -> float | None:
    """How many waves a costly kernel runs in, when the last one is a nearly empty one of a few."""
    found = waves(kernel, processors, capability)
    if found is None:
        return None
    whole = math.floor(found)
    long = kernel.device_ms >= _LONG_MS * max(kernel.count, 1)
    # A last wave that is at least half full is not reported.
    return found if whole >= 1 and 0 < found - whole < 0.5 and 1 / (whole + 1) >= _TAIL and long else None


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
