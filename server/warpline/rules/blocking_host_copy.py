"""The host waits for a copy from pinned memory, because `non_blocking=True` is missing.

## What it does

Finds copies from pinned memory to the device that the host waits for.

## Why is this slow

Without `non_blocking=True` the host waits until the copy is done and queues no work meanwhile. With it,
the copy overlaps with the kernels of the previous step.

## Example

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=8, pin_memory=True)  #> site loader num_workers=8 pin_memory=true
for images in loader:  #> use loader
    images = images.cuda()  #> found; cost device_ms=5 copy_ms=5 cpu_ms=6 sync_ms=5
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30 idle_ms=8
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, num_workers=8, pin_memory=True)
for images in loader:
    images = images.cuda(non_blocking=True)
    train(images)
```

## Near misses

The host does not wait:

```python
for images in loader:
    images = images.cuda(non_blocking=True)  #> cost device_ms=5 copy_ms=5
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30
```

From pageable memory (`pageable-host-copy` reports that):

```python
for images in loader:
    images = images.cuda()  #> cost device_ms=5 copy_ms=5 sync_ms=5
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30
```

## Fix safety

Safe for the batches of a loader: the stream keeps the order, so the same values arrive. It would be
unsafe only if the script wrote to the host tensor before the copy is done.

## References

- [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.change import OverlapCopies
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, ms, percent
from warpline.rulekit.copies import host_to_device, without_waiting


class BlockingHostCopy(Rule):
    area = "data"
    needs = ("kernels",)

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            copied = host_to_device(cost, pageable=False)
            wait = min(cost.sync_ms, copied)
            if not context.matters(wait):
                continue
            place = (cost.file, cost.line)
            yield context.draft(
                place,
                place,
                "The host waits {wait} of each step ({share}) for a copy from pinned memory. With "
                "non_blocking=True the copy would overlap with compute.",
                {
                    "wait": ms("wait for the copy", wait),
                    "share": percent("wait for the copy", context.share(wait)),
                },
                cost_ms=wait,
                change=OverlapCopies((place,)),
                fixes=[partial(_fix, context, place)],
            )


def _fix(context: Context, place: tuple[str, int]) -> Fix:
    first, *rest = without_waiting(context, [place]).values()
    return first.fix("Copy with non_blocking=True", "safe", *rest)
