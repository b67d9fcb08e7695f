"""Memory grows with every step.

## What it does

Finds memory that grows from step to step, names the line that allocates most of it, and computes how
many steps are left.

## Why is this slow

The run fails when memory is full. Before that, the allocator slows down, because it has to search and
to call the driver.

## Example

```python
#> memory growth_bytes_per_step=52428800 peak_bytes=10000000000
cache = {}
for step, images in enumerate(loader):
    features = model(images)  #> found; cost device_ms=20 kept_bytes=52428800
    cache[step] = features
```

## Use instead

Store tensors on the host (`features.cpu()`), or without their graph (`features.detach()`), or only the
last few. A loss of `F.mse_loss` or `F.smooth_l1_loss` is one number in a storage of the size of its input,
which `loss.detach()` shares: store `loss.detach().clone()`.

## Near misses

Memory that does not grow:

```python
#> memory growth_bytes_per_step=0 peak_bytes=10000000000
for images in loader:
    features = model(images)  #> cost device_ms=20
```

## Fix safety

Display: only the author knows why the tensors are stored.

## References

- [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.rulekit import Context, Draft, Rule, count, size
from warpline.rulekit.memory import growth_bytes


class MemoryGrowth(Rule):
    area = "memory"

    def find(self, context: Context) -> Iterator[Draft]:
        growth = growth_bytes(context)
        kept = [cost for cost in context.profile.lines if cost.kept_bytes > 0]
        if growth is None or not kept:
            return
        line = max(kept, key=lambda cost: cost.kept_bytes)
        place = (line.file, line.line)
        evidence = {
            "growth": size("memory growth per step", growth),
            "kept": size("kept per step, allocated here", line.kept_bytes),
        }
        text = "Memory grows by {growth} a step; {kept} of it is allocated here and not freed."
        free = context.device.memory_bytes - (context.profile.facts.memory.peak_bytes or 0)
        if context.on_gpu and context.device.memory_bytes and free > 0:
            evidence["left"] = count("steps until memory is full", round(free / growth), "steps")
            text += " At this rate, memory is full after {left} more steps."
        yield context.draft(place, place, text, evidence, cost_ms=None, severity="warning")
