"""The loader has too few workers, and the step waits for batches.

## What it does

Finds a `DataLoader` with workers that the step waits for, if they take too long for their batches and the
machine has free cores, and computes how many workers would keep up with the step. Workers that mostly wait,
as for a disk, share cores with each other and with the step. On a CPU whose operators have one thread, that
one sleeps while the step waits, and its core is free for a worker meanwhile.

Where no core is free since each worker keeps several busy, the finding is about threads: libraries, as
NumPy's for products, have one for each core in each worker, and these wait for more work in a loop. Then no
number of workers is offered: first these libraries need one thread, and what that gains is a bound.

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

A worker that computes, where the operators' only thread waits for it most of the time. Two share its core:

```python
#> device kind=cpu; flags cpu_count=2 threads=1; workers batch_ms=50 busy=1
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, num_workers=1)
#^ found; site loader num_workers=1 persistent_workers=true batches_per_epoch=500 epochs_started=1
for images, labels in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    train(images, labels)  #> cost cpu_ms=10
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=16, num_workers=2)
for images, labels in loader:
    train(images, labels)
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

## Example

Two workers whose libraries have threads of their own, so that no core is left for a third:

```python
#> flags cpu_count=6; workers batch_ms=200 busy=2.4
from torch.utils.data import DataLoader

loader = DataLoader(spectra, batch_size=64, num_workers=2)
#^ found; site loader num_workers=2 batches_per_epoch=500 epochs_started=1
for power, labels in loader:  #> cost cpu_ms=80 idle_ms=80 loader_ms=80; use loader
    train(power, labels)  #> cost device_ms=20
```

## Use instead

`OPENBLAS_NUM_THREADS=1` in the environment, and more workers.

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
    crowded_ms,
    edit_site,
    exposed_ms,
    iterated_at,
    starved_ms,
    taking_ms,
    waits,
    whence,
)
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_LATE = "With num_workers={present} each step waits {spent} for the next batch ({share} of the step). "
_THREADS = (
    "Each worker keeps {cores} cores busy: a library has threads of its own in it, which may just wait for "
    "work in a loop. With one thread each there is room for {workers} workers."
)
_LIMIT = (
    "give libraries one thread in workers (`OPENBLAS_NUM_THREADS` and `MKL_NUM_THREADS` in the environment "
    "for NumPy, or threadpoolctl's `threadpool_limits` in `worker_init_fn`), then raise num_workers"
)


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
            own_ms = context.step_ms - wait
            enough = math.ceil(batch_ms / max(own_ms, batch_ms / 64)) + 1
            busy = _busy(context)
            most = min(enough, loader.batches_per_epoch or 64, 64)
            workers = min(most, _room(context, busy))
            left = _left(context, own_ms, batch_ms, workers, busy)
            kept = kept_samples(context, site, lines, wait)
            if kept is not None and (workers <= present or kept.left_ms <= max(left, taking_ms(batch_ms))):
                evidence = {"present": count("num_workers", present, "workers")}
                yield made_once(context, site, _LATE, wait, kept, evidence, unseen=wait > captured)
                continue
            if workers <= present:
                alone = min(most, _room(context, 1.0))
                saving = wait - _left(context, own_ms, batch_ms, alone, 1.0)
                if busy > 1 and alone > present and context.matters(saving):
                    yield _of_threads(context, site, busy, alone, wait, saving)
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


def _left(context: Context, own_ms: float, batch_ms: float, workers: int, busy: float) -> float:
    """What a step waits for batches of so many workers: each makes them in turn, and all that work has to be
    done by the cores that there are."""
    return max(batch_ms / max(1, workers) - own_ms, crowded_ms(context, own_ms, batch_ms * busy))


def _of_threads(context: Context, site: Site, busy: float, workers: int, wait: float, saving: float) -> Draft:
    """No core is left for more workers, since libraries have threads of their own in each. How much of that
    is a wait in a loop is not known, so the gain is a bound."""
    present = facts_of(Loader, site).num_workers or 0
    return context.draft(
        edit_site(context, site, "num_workers"),
        _LATE + _THREADS,
        {
            "present": count("num_workers", present, "workers"),
            **context.spent("exposed wait", wait),
            "cores": count("cores that a worker keeps busy", busy, "cores"),
            "workers": count("workers of one thread each", workers, "workers"),
        },
        cause=iterated_at(context, site),
        cost_ms=wait,
        saving_ms=saving,
        fixes=[_LIMIT],
    )


def _busy(context: Context) -> float:
    """Cores that a worker keeps busy: a part of one where it also waits for something else."""
    workers = context.profile.facts.workers
    busy = 1.0 if workers is None or workers.busy is None else max(workers.busy, LEAST_BUSY)
    return busy if busy < 1 else float(round(busy))


def _room(context: Context, busy: float) -> int:
    """How many workers have a processor each, beside those that make the steps, or take turns with a thread
    that sleeps while the step waits. Those that mostly wait for something else, as for a disk, share all of
    them."""
    flags, on_cpu = context.profile.facts.flags, context.profile.manifest.device.kind == "cpu"
    cores = int(flags.cpu_count or 1)
    if busy >= BUSY:
        free = flags.cores_of_workers if on_cpu else None
        cores = cores - 1 if free is None else free
    return int(cores / busy)
