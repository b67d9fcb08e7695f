"""The training loop waits while the same process makes the next batch.

## What it does

Finds a `DataLoader` without workers whose batches the step waits for, by the measured wait at the
line that iterates it, and leads to where the loader is made.

## Why is this slow

With `num_workers=0` each batch is read, decoded, augmented and collated by the training process,
one after the other with the step: the device has nothing to do meanwhile. Worker processes make the
next batches while the present one is trained on.

## Example

```python
#> flags cpu_count=16
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, shuffle=True)
#^ found; site loader num_workers=0 batch_size=32 batches_per_epoch=500 in_main_ms=40
for images, labels in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    loss = model(images, labels)  #> cost device_ms=10
```

## Use instead

```python
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=5, persistent_workers=True)
for images, labels in loader:
    loss = model(images, labels)
```

## Near misses

A loader that is as slow, but has workers:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, num_workers=2)  #> site loader num_workers=2 in_main_ms=0
for batch in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(batch)  #> cost device_ms=10
```

A loader without workers that costs next to nothing:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)  #> site loader num_workers=0 in_main_ms=0.1
for batch in loader:  #> cost cpu_ms=0.1 idle_ms=0.1 loader_ms=0.1; use loader
    train(batch)  #> cost device_ms=30
```

No measured cost at all:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)  #> site loader num_workers=0
for batch in loader:  #> use loader
    train(batch)  #> cost device_ms=30
```

## Fix safety

Unsafe: the order of the samples stays the same, but each worker has random numbers of its own, so
random augmentation draws other values; the dataset is also copied into each worker.

## References

- [Multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import LoaderWorkers
from warpline.model.report import Fix
from warpline.model.run import Site
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, count, ms, percent


class LoaderWithoutWorkers(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            if site.facts.get("num_workers") != 0:
                continue
            waits = [cost for cost in context.costs(site.uses) if cost.loader_ms > 0]
            wait = sum(cost.loader_ms for cost in waits)
            if not context.matters(wait):
                continue
            hottest = max(waits, key=lambda cost: cost.loader_ms)
            workers = _sensible(context, site, wait)
            yield context.draft(
                (site.file, site.line),
                (hottest.file, hottest.line),
                "Batches are made in the training process (num_workers is {present}): each step waits "
                "{wait} for the next one, {share} of the step. {workers} workers would make them "
                "meanwhile.",
                {
                    "present": count("num_workers", 0, "workers"),
                    "wait": ms("exposed wait", wait),
                    "share": percent("exposed wait", context.share(wait)),
                    "workers": count("sensible num_workers", workers, "workers"),
                },
                cost_ms=wait,
                change=LoaderWorkers(workers, tuple((cost.file, cost.line) for cost in waits), 0, True, wait),
                fixes=[partial(_fix, context, site, workers)],
            )


def _sensible(context: Context, site: Site, wait: float) -> int:
    """As many workers as keep up with the rest of the step, and one more; no more than cores or
    batches."""
    rest = max(context.step_ms - wait, wait / 32)
    limits = [
        int(context.profile.facts.flags.get("cpu_count") or 1),
        site.facts.get("batches_per_epoch") or 64,
        32,
    ]
    return max(1, min(math.ceil(wait / rest) + 1, *limits))


def _fix(context: Context, site: Site, workers: int) -> Fix:
    source = context.source(site.file)
    call = source.call(site.line, "DataLoader") if source is not None else None
    if source is None or call is None:
        raise Refused("the call that makes the loader was not found on that line")
    present = source.argument(call, "num_workers", 5)
    if present is not None and not isinstance(present.value, cst.Integer):
        raise Refused(f"num_workers comes from `{source.code(present.value)}`: change it there")
    edits = Edits(source)
    edits.set_argument(call, "num_workers", str(workers), 5)
    edits.set_argument(call, "persistent_workers", "True")
    return edits.fix(f"Make batches in {workers} worker processes", "unsafe")
