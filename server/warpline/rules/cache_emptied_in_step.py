"""`torch.cuda.empty_cache()` is called in every step, and the memory is allocated again.

## What it does

Finds `torch.cuda.empty_cache()` calls that take a measurable part of the step.

## Why is this slow

PyTorch caches freed memory for the next tensors. Emptying the cache waits for the device. Later
allocations then call the driver, which waits again. PyTorch could use the cached memory anyway, so the
call makes no more memory available to it.

## Example

```python
import torch

for images, labels in loader:
    train(images, labels)  #> cost device_ms=14 idle_ms=6 step_ms=20
    torch.cuda.empty_cache()  #> found; cost cpu_ms=5 sync_ms=2 idle_ms=5
```

## Use instead

```python
import torch

for images, labels in loader:
    train(images, labels)
```

## Fix safety

Safe: no value depends on it. Less memory is left for other processes on the same device.

## References

- [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Scale
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Rule, Source


class CacheEmptiedInStep(Rule):
    area = "waiting"
    tags = ("unnecessary",)
    needs = ("kernels",)
    covers = ("sync-in-step",)

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            spent = max(cost.step_ms, cost.idle_ms)
            if not context.matters(spent):
                continue
            source = context.source(cost.file)
            call = source.call(cost.line, "empty_cache")
            if call is None:
                continue
            yield context.draft(
                cost.place,
                "Emptying the memory cache takes {spent} of each step ({share}). Later allocations "
                "have to call the driver again.",
                context.spent("time at the line", spent),
                cost_ms=spent,
                change=Scale((cost.place,), device=1.0, host=0.0),
                fixes=[partial(_fix, source, call)],
            )


def _fix(source: Source, call: cst.Call) -> Fix:
    return Edits(source).remove_call(call).fix("Remove the empty_cache() call", "safe")
