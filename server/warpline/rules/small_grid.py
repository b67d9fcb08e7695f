"""A kernel has fewer blocks than the device has multiprocessors.

## What it does

Finds the user's own kernels (Triton functions, CUDA in a Python file) that take a measurable part of
the step with fewer blocks than multiprocessors. Kernels of libraries cannot be changed; `small-batch`
reports them if a larger batch would fill the device.

## Why is this slow

A block runs on one multiprocessor. With too few blocks, the other multiprocessors are idle while the
kernel runs, and no second block can run while the first one waits for memory.

## Example

```python
import triton
import triton.language as tl

@triton.jit
def sum_rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    ...

sum_rows[(32,)](x, y, cols, BLOCK=1024)
#^ found; cost device_ms=4; kernel sum_rows count=2 device_ms=4 grid=(32,1,1) block=(128,1,1)
```

## Use instead

Nothing is edited. Give each program less to do and launch more of them: smaller blocks, a second
grid dimension over the columns, or a larger batch.

## Fix safety

No edit is offered.

## References

- [Nsight Compute: launch configuration](https://docs.nvidia.com/nsight-compute/ProfilingGuide/#sections-and-rules)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from warpline.model.kernel_name import readable
from warpline.model.profile import Kernel
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.saving import less_device_time
from warpline.rulekit.triton import is_own

#: A kernel shorter than this is not what its grid makes slow.
_LONG_MS = 0.02


class SmallGrid(Rule):
    area = "kernels"
    tags = ("kernel",)
    severity = "information"
    needs = ("kernels", "occupancy")

    def find(self, context: Context) -> Iterator[Draft]:
        processors = context.device.multiprocessors
        if not processors:
            if context.profile.lines:
                context.note("small-grid: the device's number of multiprocessors is unknown")
            return
        for cost in context.profile.lines:
            small = [
                kernel for kernel in cost.kernels if _is_small(kernel, processors) and is_own(context, kernel)
            ]
            # One finding a line: of its costliest kernel.
            for kernel in sorted(small, key=lambda kernel: -kernel.device_ms)[:1]:
                blocks = math.prod(kernel.grid or ())
                spent = min(kernel.device_ms, cost.step_ms)
                # Nsight Compute's estimate for a grid below the number of multiprocessors.
                saving = spent * (processors - blocks) / processors
                yield context.draft(
                    cost.place,
                    f"The kernel `{readable(kernel.name)}` has {{blocks}} blocks for {{processors}} "
                    "multiprocessors and takes {spent} a step ({share}). Most of the device is idle "
                    "meanwhile.",
                    {
                        "blocks": count("blocks", blocks, "blocks"),
                        "processors": count("multiprocessors", processors, "multiprocessors"),
                        **context.spent("kernel", spent),
                    },
                    cost_ms=spent,
                    saving_ms=saving,
                    change=less_device_time([cost], saving),
                )


def _is_small(kernel: Kernel, processors: int) -> bool:
    """Long enough to matter, with fewer blocks than the device has multiprocessors."""
    long = kernel.device_ms >= _LONG_MS * max(kernel.count, 1)
    return (
        kernel.kind == "kernel" and kernel.grid is not None and math.prod(kernel.grid) < processors and long
    )
