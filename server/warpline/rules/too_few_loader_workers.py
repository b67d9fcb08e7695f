"""The loader has too few workers, and the step waits for batches.

## What it does

Finds a `DataLoader` with workers that the step waits for, if they take too long for their batches and the
machine has free cores, and computes how many workers would keep up with the step. Workers that mostly wait,
as for a disk, share cores with each other and with the step.

## Why is this slow

`n` workers load `n` batches in the time that one worker needs for one. If that is longer than `n`
steps, the queue is always empty and each step waits.

## Example

```python
#> flags cpu_count=16; workers batch_ms=60
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=2)
#^ found; site loader num_workers=2 persistent_workers=true batches_per_epoch=500 epochs_started=1
for images, labels in loader:  #> cost cpu_ms=20 idle_ms=20 loader_ms=20; use loader
    train(images, labels)  #> cost device_ms=10
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=7)
for images, labels in loader:
    train(images, labels)
```

## Example

Workers that mostly wait, as for a disk or a network, need no core that the step leaves, and more of them than
the machine has cores keep up:

```python
#> device kind=cpu; flags cpu_count=2 threads=2; workers batch_ms=50 busy=0.1
from torch.utils.data import DataLoader

loader = DataLoader(scans_of_a_store, batch_size=16, num_workers=1)
#^ found; site loader num_workers=1 persistent_workers=true batches_per_epoch=500 epochs_started=1
for scans, ages in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(scans, ages)  #> cost cpu_ms=10
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(scans_of_a_store, batch_size=16, num_workers=6)
for scans, ages in loader:
    train(scans, ages)
```

## Example

Samples that are the same in each epoch, and fit into a small part of the memory, need no workers at all, and
are made once even where no core is left for more workers (`loader-without-workers` says how that is known):

```python
#> flags cpu_count=4; workers batch_ms=14
from torch.utils.data import DataLoader

loader = DataLoader(waves, batch_size=64, num_workers=3)
#^ found; site loader num_workers=3 batches_per_epoch=938 dataset_length=60000
#^ also sample_form=tensor sample_bytes=3200 sample_ms=0.1 rows_ms=0.1
for epoch in range(14):
    for batch in loader:  #> cost cpu_ms=4 idle_ms=4 loader_ms=4; use loader
        train(batch)  #> cost device_ms=0.6
```

## Use instead

```python
from torch.utils.data import default_collate, DataLoader

samples = default_collate([waves[i] for i in range(len(waves))])
loader = DataLoader(range(len(waves)), batch_size=64, num_workers=0, collate_fn=lambda rows: samples[rows])
for epoch in range(14):
    for batch in loader:
        train(batch)
```

## Near misses

Workers that compute, on a CPU whose cores the operators' threads take:

```python
#> device kind=cpu; flags cpu_count=2 threads=2; workers batch_ms=50 busy=0.9
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, num_workers=1)  #> site loader num_workers=1 epochs_started=1
for images, labels in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(images, labels)  #> cost cpu_ms=10
```

As many workers as cores but one, which makes the steps, so more would not help:

```python
#> flags cpu_count=3; workers batch_ms=60
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=2)  #> site loader num_workers=2 epochs_started=1
for images, labels in loader:  #> cost cpu_ms=20 idle_ms=20 loader_ms=20; use loader
    train(images, labels)  #> cost device_ms=10
```

The host waits, but the device is busy with earlier steps:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=2)  #> site loader num_workers=2
for images, labels in loader:  #> cost cpu_ms=20 loader_ms=20 step_ms=0.1; use loader
    train(images, labels)  #> cost device_ms=30
```

## Fix safety

Unsafe: each worker has its own random numbers, so random augmentation gives other values. More workers
also need more memory. Samples that are made once do not see what changes the dataset later. Without workers
that stay (`persistent_workers`) an epoch draws one random number more, so later epochs have another order.

## References

- [DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from warpline.model.change import LoaderWorkers
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.kept_samples import kept_samples, made_once
from warpline.rulekit.loaders import (
    BUSY,
    LEAST_BUSY,
    WAITS_PERCENT,
    change_loader,
    edit_site,
    exposed_ms,
    iterated_at,
    spare_cores,
    starved_ms,
    taking_ms,
    waits,
    whence,
)
from warpline.wire.sites import Loader, facts_of

_LATE = "With num_workers={present} each step waits {spent} for the next batch ({share} of the step). "


class TooFewLoaderWorkers(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            loader = facts_of(Loader, site)
            present = loader.num_workers or 0
            lines = waits(context, site)
            wait = starved_ms(context, site)
            captured = sum(exposed_ms(context, cost) for cost in lines)
            if present <= 0 or not context.matters(wait) or context.share(wait) < WAITS_PERCENT:
                continue
            # In steady state `present` workers make `present` batches in as many steps.
            batch_ms = present * context.step_ms
            enough = math.ceil(batch_ms / max(context.step_ms - wait, batch_ms / 64)) + 1
            busy = _busy(context)
            workers = min(enough, _room(context, busy), loader.batches_per_epoch or 64, 64)
            left = max(0.0, batch_ms / max(1, workers) - (context.step_ms - wait))
            kept = kept_samples(context, site, lines, wait)
            if kept is not None and (workers <= present or kept.left_ms <= max(left, taking_ms(batch_ms))):
                evidence = {"present": count("num_workers", present, "workers")}
                yield made_once(context, site, _LATE, wait, kept, evidence, unseen=wait > captured)
                continue
            if workers <= present:
                continue
            title = f"Use {workers} worker processes"
            yield context.draft(
                edit_site(context, site, "num_workers"),
                "num_workers={present} is too low: each step waits {spent} for the next batch ({share} "
                "of the step). "
                + (
                    "{workers} workers would keep up."
                    if workers == enough
                    else "There is room for {workers}."
                )
                + whence(context, site, "num_workers"),
                {
                    "present": count("num_workers", present, "workers"),
                    **context.spent("exposed wait", wait),
                    "workers": count("sensible num_workers", workers, "workers"),
                },
                cause=iterated_at(context, site),
                cost_ms=wait,
                saving_ms=wait - left,
                change=LoaderWorkers(
                    workers,
                    tuple(cost.place for cost in lines),
                    present,
                    batch_ms=batch_ms,
                    waiting=busy < BUSY,
                    cores=busy,
                ),
                fixes=[partial(change_loader, context, site, title, num_workers=str(workers))],
                unseen=wait > captured,
            )


def _busy(context: Context) -> float:
    """Cores that a worker keeps busy: a part of one where it also waits for something else."""
    workers = context.profile.facts.workers
    return 1.0 if workers is None or workers.busy is None else max(workers.busy, LEAST_BUSY)


def _room(context: Context, busy: float) -> int:
    """How many workers have a processor each, beside those that make the steps. Those that mostly wait for
    something else, as for a disk, share all of them."""
    cores = int(context.profile.facts.flags.cpu_count or 1)
    if busy >= BUSY:
        spare = spare_cores(context)
        cores = cores - 1 if spare is None else spare
    return int(cores / busy)
