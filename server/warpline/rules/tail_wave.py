"""The last wave of a kernel's blocks fills only a part of the device.

## What it does

Computes from grid, block, registers and shared memory how many waves a costly kernel of the user's
own (a Triton function, CUDA in a Python file) runs in, and finds those of a few waves whose last one is
nearly empty. How a library's kernels are cut into blocks is not for the user to choose.

## Why is this slow

A device runs so many blocks at a time, a wave. The kernel is over when its last block is; a last
wave of a few blocks takes as long as a full one while most of the device stands idle.

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

Nothing is edited. Block sizes, or sizes of the problem, that make the number of blocks a multiple of
what the device holds waste nothing; so does a grid of as many programs as fit, each with a loop.

## Near misses

The last wave is full:

```python
import triton

@triton.jit
def softmax(x_ptr):
    ...

softmax[(rows,)](x)
#^ cost device_ms=4
#^ kernel softmax count=2 device_ms=4 grid=(264,1,1) block=(256,1,1) registers=255 shared_bytes=100000
```

So many waves that the last one does not count:

```python
import triton

@triton.jit
def softmax(x_ptr):
    ...

softmax[(rows,)](x)
#^ cost device_ms=4
#^ kernel softmax count=2 device_ms=4 grid=(5290,1,1) block=(256,1,1) registers=255 shared_bytes=100000
```

A product of cuBLAS's:

```python
y = x @ w
#^ cost device_ms=4
#^ kernel gemm count=2 device_ms=4 grid=(136,1,1) block=(256,1,1) registers=255 shared_bytes=100000
```

The trace does not say how many registers it uses:

```python
import triton

@triton.jit
def softmax(x_ptr):
    ...

softmax[(rows,)](x)
#^ cost device_ms=4; kernel softmax count=2 device_ms=4 grid=(136,1,1) block=(256,1,1)
```

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
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.occupancy import waves
from warpline.rulekit.own_kernels import is_own
from warpline.rulekit.saving import less_device_time

#: A kernel shorter than this is not what its waves make slow.
_LONG_MS = 0.05
#: The share of the kernel's time that a partial wave may cost: Nsight Compute's threshold.
_TAIL = 0.2


class TailWave(Rule):
    area = "kernels"
    tags = ("kernel",)
    severity = "information"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        processors, capability = context.device.multiprocessors, context.device.capability
        if not processors or capability is None:
            context.note("tail-wave: the number of multiprocessors of the device is not known")
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
                    (cost.file, cost.line),
                    (cost.file, cost.line),
                    f"The kernel `{readable(kernel.name)}` runs in {{waves}} waves and takes "
                    "{spent} a step, {share}: while the last wave runs, {idle} of the device stand idle.",
                    {
                        "waves": count("waves", round(number, 2), "waves"),
                        "spent": ms("kernel", spent),
                        "share": percent("kernel", context.share(spent)),
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
    # Half a wave and more is no waste worth a word.
    return found if whole >= 1 and 0 < found - whole < 0.5 and 1 / (whole + 1) >= _TAIL and long else None
