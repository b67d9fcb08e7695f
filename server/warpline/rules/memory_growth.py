"""Memory grows with every step.

## What it does

Finds memory that grows from step to step, names the line that keeps it (if several lines may keep it, the one
that allocates most of it), and computes how many steps are left.

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

## Example

```python
#> memory growth_bytes_per_step=52428800 peak_bytes=10000000000
class Encoder(nn.Module):
    def forward(self, images):
        return self.layers(images).relu()  #> cost calls=1 device_ms=20 kept_bytes=52428800


for step, images in enumerate(loader):  #> cost calls=1
    features = encoder(images)  #> cost calls=1
    shown.append(step)  #> cost calls=1
    cache[step] = features  #> found; cost calls=1
```

## Use instead

Store `features.cpu()`, or clear `cache` from time to time.

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
from warpline.rulekit.keeping import keepers
from warpline.rulekit.memory import growth_bytes


class MemoryGrowth(Rule):
    area = "memory"

    def find(self, context: Context) -> Iterator[Draft]:
        growth = growth_bytes(context)
        kept = [cost for cost in context.profile.lines if cost.kept_bytes > 0]
        if growth is None or not kept:
            return
        line = max(kept, key=lambda cost: cost.kept_bytes)
        cause = line.place
        place = _keeper(context) or cause
        evidence = {
            "growth": size("memory growth per step", growth),
            "kept": size(
                "kept per step, allocated here" if place == cause else "kept per step", line.kept_bytes
            ),
        }
        text = "Memory grows by {growth} a step; "
        text += (
            "{kept} of it is allocated here and not freed."
            if place == cause
            else "this keeps what another line allocates, {kept} of it."
        )
        free = context.device.memory_bytes - (context.profile.facts.memory.peak_bytes or 0)
        if context.on_gpu and context.device.memory_bytes and free > 0:
            evidence["left"] = count("steps until memory is full", round(free / growth), "steps")
            text += " At this rate, memory is full after {left} more steps."
        yield context.draft(place, text, evidence, cause=cause, cost_ms=None, severity="warning")


def _keeper(context: Context) -> tuple[str, int] | None:
    """The only line that puts what a step makes where it outlives the step; None where there are several."""
    found = {source.place(node) for source, node in keepers(context, graph=False)}
    return found.pop() if len(found) == 1 else None
