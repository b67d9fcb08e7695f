"""A copy from pinned memory makes the host wait although it need not.

## What it does

Finds copies to the device whose source is pinned but which the host waits for, because
`non_blocking=True` is missing.

## Why is this slow

Without `non_blocking=True` the host stops until the copy is done, and cannot queue the next work
meanwhile. The copy itself is ready to run beside the previous step's kernels.

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

Not waited for:

```python
for images in loader:
    images = images.cuda(non_blocking=True)  #> cost device_ms=5 copy_ms=5
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30
```

From pageable memory, which is another rule's:

```python
for images in loader:
    images = images.cuda()  #> cost device_ms=5 copy_ms=5 sync_ms=5
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=5 kind=copy
    train(images)  #> cost device_ms=30
```

## Fix safety

Safe for what a loader makes: the same values arrive, in the order of the stream. Only a host tensor
that is written to before the copy is done would be another matter.

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
    needs_gpu = True

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
                "The host waits {wait} of each step ({share}) for a copy from pinned memory that could run "
                "beside other work.",
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
    return first.fix("Copy without waiting", "safe", *rest)
