"""`torch.cuda.empty_cache()` is called in every step, and the memory is allocated again.

## What it does

Finds `torch.cuda.empty_cache()` calls that take a measurable part of the step, in your code or in a
library's. A finding in a library stands at the setting that turns it off, where there is one.

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

## Example

```python
#> totals idle_ms=10
from transformers import Trainer, TrainingArguments

args = TrainingArguments("out", torch_empty_cache_steps=1)
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()  #> found; cost step_ms=60 device_ms=48 idle_ms=10 cpu_ms=55 sync_ms=8
#^ inside file=/lib/transformers/trainer.py line=1914 step_ms=52 device_ms=48
#^ inside file=/lib/accelerate/memory.py line=60 step_ms=8 idle_ms=8 text=torch.cuda.empty_cache()
```

## Use instead

`TrainingArguments("out")`: without `torch_empty_cache_steps` the Trainer leaves the cache alone.

## Fix safety

Safe: no value depends on it. Less memory is left for other processes on the same device.

## References

- [torch.cuda.empty_cache](https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Change, Scale
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Rule, Source
from warpline.rulekit.saving import without_inside

_EMPTIES = "empty_cache"
_HERE = "Emptying the memory cache takes {spent} of each step ({share})."
_IN_LIBRARY = (
    "A library that this line calls empties the memory cache, which takes {spent} of each step ({share})."
)


class CacheEmptiedInStep(Rule):
    area = "waiting"
    tags = ("unnecessary",)
    needs = ("kernels",)
    covers = ("sync-in-step",)

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            if not context.matters(max(cost.step_ms, cost.idle_ms)):
                continue  # before its source is read
            source = context.source(cost.file)
            emptied = [entry for entry in cost.inside if _EMPTIES in entry.text]
            call = source.call(cost.line, _EMPTIES)
            if emptied:
                spent = sum(max(entry.step_ms, entry.idle_ms) for entry in emptied)
                change: Change = without_inside(cost, emptied)
            elif call is not None:
                spent = max(cost.step_ms, cost.idle_ms)
                change = Scale((cost.place,), device=1.0, host=0.0)
            else:
                continue
            if not context.matters(spent):
                continue
            yield context.draft(
                cost.place,
                (_IN_LIBRARY if emptied else _HERE) + " Later allocations have to call the driver again.",
                context.spent("time at the line", spent),
                cost_ms=spent,
                change=change,
                fixes=[partial(_fix, source, call)] if call is not None else [],
            )


def _fix(source: Source, call: cst.Call) -> Fix:
    return Edits(source).remove_call(call).fix("Remove the empty_cache() call", "safe")
