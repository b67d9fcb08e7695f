"""The training process loads each batch itself, and the step waits for it.

## What it does

Finds a `DataLoader` without workers that the step waits for, by the measured wait at the line that
iterates over it, and points to the line that creates the loader.

## Why is this slow

With `num_workers=0` the training process reads, decodes, augments and collates each batch between two
steps, and the device is idle meanwhile. Worker processes prefetch the next batches during the step.

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

loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=8, persistent_workers=True)
for images, labels in loader:
    loss = model(images, labels)
```

## Example

An iterable dataset gets a finding without a fix, because every worker would yield all of it:

```python
from torch.utils.data import DataLoader, IterableDataset

class Lines(IterableDataset):
    def __iter__(self):  #> cost cpu_ms=30 idle_ms=30 loader_ms=30
        yield from parse(self.path)

for batch in DataLoader(Lines(), batch_size=32):
    #^ found; use loader; cost cpu_ms=2 loader_ms=2 calls=1
    #^ site loader num_workers=0 dataset_file=/example/train.py dataset_line=4
    train(batch)  #> cost device_ms=10
```

## Use instead

Let `__iter__` yield only the worker's part (`torch.utils.data.get_worker_info()`), then add workers.

## Example

On a CPU whose cores are all taken by the threads of torch's operators, workers take turns with the step. The
finding then promises nothing:

```python
#> device kind=cpu; flags cpu_count=2 threads=2
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)
#^ found; site loader num_workers=0 batches_per_epoch=500 in_main_ms=5
for batch in loader:  #> cost cpu_ms=5 idle_ms=5 loader_ms=5; use loader
    train(batch)  #> cost cpu_ms=5
```

## Use instead

Cheaper samples, or workers and fewer threads (`torch.set_num_threads`), measured:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, num_workers=2, persistent_workers=True)
for batch in loader:
    train(batch)
```

## Example

Libraries that a dataset calls have threads of their own, as NumPy has for products. A worker then keeps
several cores busy, and where the step leaves fewer the finding promises nothing:

```python
#> device kind=cpu; flags cpu_count=4 threads=3
from torch.utils.data import DataLoader

loader = DataLoader(spectra, batch_size=32)
#^ found; site loader num_workers=0 batches_per_epoch=500 in_main_ms=5 in_main_busy=1 in_main_beside=2.9
for batch in loader:  #> cost cpu_ms=5 idle_ms=5 loader_ms=5; use loader
    train(batch)  #> cost cpu_ms=5
```

## Use instead

Give these libraries one thread (`OPENBLAS_NUM_THREADS=1`, `MKL_NUM_THREADS=1` in the environment), then add
workers and measure.

## Example

Loading that mostly waits, as for a disk, needs no core:

```python
#> device kind=cpu; flags cpu_count=2 threads=2
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)
#^ found; site loader num_workers=0 batches_per_epoch=500 in_main_ms=5 in_main_busy=0.1
for batch in loader:  #> cost cpu_ms=5 idle_ms=5 loader_ms=5; use loader
    train(batch)  #> cost cpu_ms=5
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, num_workers=2, persistent_workers=True)
for batch in loader:
    train(batch)
```

## Example

Beside other processes, loading may wait for cores. The gain is then that of a step without these waits:

```python
#> flags cpu_count=16 threads=16
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=96)
#^ found; site loader num_workers=0 batches_per_epoch=500 in_main_ms=700 in_main_busy=1
for batch in loader:  #> cost cpu_ms=700 idle_ms=700 loader_ms=700 stalled_ms=600; use loader
    train(batch)  #> cost device_ms=100
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=96, num_workers=2, persistent_workers=True)
for batch in loader:
    train(batch)
```

## Example

If a batch takes less time than its transfer from a worker, workers would make the step longer:

```python
from torch.utils.data import DataLoader

loader = DataLoader(points, batch_size=32)
#^ found; site loader num_workers=0 in_main_ms=0.3
for batch in loader:  #> cost cpu_ms=0.3 idle_ms=0.3 loader_ms=0.3; use loader
    train(batch)  #> cost device_ms=0.9
```

## Use instead

Keep the samples in one tensor and index whole batches:
`for rows in torch.randperm(len(points)).split(32): train(points[rows])`.

## Example

A `TensorDataset` is asked for one row after the other, and the rows are put together again:

```python
from torch.utils.data import DataLoader, TensorDataset

points = TensorDataset(positions, charges)
loader = DataLoader(points, batch_size=64, shuffle=True)
#^ found; site loader num_workers=0 dataset_type=TensorDataset in_main_ms=5
for batch in loader:  #> cost cpu_ms=5 idle_ms=5 loader_ms=5; use loader
    train(batch)  #> cost device_ms=5
```

## Use instead

One index for each batch. Rows, order and random numbers stay the same:

```python
from torch.utils.data import BatchSampler, RandomSampler, DataLoader, TensorDataset

points = TensorDataset(positions, charges)
loader = DataLoader(points, batch_size=None, sampler=BatchSampler(RandomSampler(points), 64, False))
for batch in loader:
    train(batch)
```

## Example

Samples that are the same in each epoch, and all fit into a small part of the memory, are made again all the
same. A trial gets some of them several times, with other random numbers:

```python
from torch.utils.data import DataLoader

loader = DataLoader(digits, 64, True)
#^ found; site loader num_workers=0 in_main_ms=6.4 dataset_length=60000 batches_per_epoch=938
#^ also sample_form=list sample_bytes=3144 sample_ms=0.1 rows_ms=0.1
for epoch in range(14):
    for images, labels in loader:  #> cost cpu_ms=6.4 idle_ms=6.4 loader_ms=6.4; use loader
        train(images, labels)  #> cost device_ms=2
```

## Use instead

Make them once. Order, sampler and `drop_last` stay, and a batch is one index:

```python
from torch.utils.data import default_collate, DataLoader

samples = default_collate([digits[i] for i in range(len(digits))])
loader = DataLoader(range(len(digits)), 64, True, collate_fn=lambda rows: [part[rows] for part in samples])
for epoch in range(14):
    for images, labels in loader:
        train(images, labels)
```

## Fix safety

Unsafe: the order of the samples stays the same, but each worker has its own random numbers, so random
augmentation gives other values. Each worker also holds a copy of the dataset. Whole batches of a
`TensorDataset` are safe; where a library or other code takes the loader apart, no edit is offered. Samples
that are made once do not see what changes the dataset later, and only some of them were compared. They keep
their memory, and the first step comes later.

## References

- [Multi-process data loading](https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from warpline.model import costs
from warpline.model.change import LoaderWorkers, Scale
from warpline.model.profile import LineCost
from warpline.model.report import CROWDED, Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count, percent
from warpline.rulekit.kept_samples import kept_samples, made_once
from warpline.rulekit.loaders import (
    BUSY,
    LEAST_BUSY,
    change_loader,
    cores_of_loading,
    edit_site,
    exposed_ms,
    iterated_at,
    iterates_itself,
    made_in_step,
    spare_cores,
    taking_ms,
    waits,
    whence,
)
from warpline.rulekit.whole_batches import are_rows, takes_whole, whole_batches
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

#: The most that taking a batch from a worker costs: one that takes less to build is not worth a worker. Two
#: of them, for batches of 0.3 ms, made a step of 1.2 ms 1.7 times as long (H100).
TAKE_MS = costs.high("batch-take-ns") / 1e6
INDEX_SHARE = costs.value("batch-index-share")

#: Such waits are left out of a promise from this share of the step on.
CROWDED_PERCENT = 5.0

_BY_ITSELF = (
    "The training process loads each batch itself: each step waits {spent} for it ({share} of the step). "
)
_CROWDED = (
    " For {crowded} of the step loading waits for cores that other processes have: copies into batches wait "
    "for torch's threads. The gain is that of a step without these waits; beside such processes it is larger."
)
_TAKEN = (
    " No gain is promised: the threads of torch's operators use every core of this machine, so workers would "
    "take turns with them. Make the samples cheaper, or leave cores to workers with `torch.set_num_threads`, "
    "and measure."
)
_TAKEN_BY_LOADING = (
    " No gain is promised: loading keeps {cores} cores busy, as libraries that it calls have threads of "
    "their own. In workers they have them too."
)
_LIMIT = (
    "workers would take turns with the step until each library has one thread "
    "(`OPENBLAS_NUM_THREADS` and `MKL_NUM_THREADS` for NumPy)"
)


class LoaderWithoutWorkers(Rule):
    area = "data"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            loader = facts_of(Loader, site)
            if loader.num_workers != 0 or made_in_step(context, site):
                continue
            lines = waits(context, site)
            wait = sum(exposed_ms(context, cost) for cost in lines)
            if not context.matters(wait):
                continue
            # What the device does meanwhile hides a part of what a batch costs.
            batch = max(wait, min(loader.in_main_ms or 0.0, context.step_ms))
            rows = are_rows(context, site)
            kept = kept_samples(context, site, lines, wait)
            if rows or (batch < TAKE_MS and kept is None):
                if not takes_whole(site):
                    yield _picked(context, site, lines, wait, rows)
                continue
            busy = _busy(loader)
            waiting = busy < BUSY
            cores = max(busy, LEAST_BUSY) if waiting else cores_of_loading(context, site, lines)
            spare = None if waiting else spare_cores(context)
            room = _room(context, spare, cores)
            loading = room == 0 and spare != 0  # not the step takes the cores
            stalled = 0.0 if waiting else _stalled(context, lines, wait)
            rest = context.step_ms - wait
            workers = _sensible(context, site, batch - stalled, rest, room, cores)
            after = max(rest, (batch - stalled) / workers) / (context.step_ms - stalled) * context.step_ms
            if kept is not None and (
                room == 0 or batch < TAKE_MS or rest + kept.left_ms <= after + taking_ms(batch)
            ):
                yield made_once(context, site, _BY_ITSELF, wait, kept)
                continue
            yield context.draft(
                edit_site(context, site, "num_workers"),
                "The training process loads each batch itself (num_workers is {present}): each step "
                "waits {spent} for it ({share} of the step). Worker processes would prefetch batches "
                "during the step; num_workers={workers} is enough here."
                + whence(context, site, "num_workers")
                + (_TAKEN_BY_LOADING if loading else _TAKEN if room == 0 else "")
                + (_CROWDED if stalled else ""),
                {
                    "present": count("num_workers", 0, "workers"),
                    **context.spent("exposed wait", wait),
                    "workers": count("sensible num_workers", workers, "workers"),
                    **({"crowded": percent(CROWDED, context.share(stalled))} if stalled else {}),
                    **(
                        {"cores": count("cores that loading keeps busy", cores, "cores")} if cores > 1 else {}
                    ),
                },
                cause=iterated_at(context, site),
                cost_ms=wait,
                saving_ms=context.step_ms - after if room != 0 else 0.0,
                change=LoaderWorkers(
                    workers,
                    tuple(cost.place for cost in lines),
                    persistent=True,
                    batch_ms=wait - stalled,
                    waiting=waiting,
                    stalled_ms=stalled,
                    cores=cores,
                ),
                fixes=[_LIMIT if loading else partial(_fix, context, site, workers)],
                unseen=room == 0,
            )


def _busy(loader: Loader) -> float:
    """Cores that a worker keeps busy while it loads a batch; few where it mostly waits, as for a disk."""
    busy, cores = loader.in_main_busy, loader.worker_cores or 1 + (loader.in_main_beside or 0.0)
    return 1.0 if busy is None else busy * cores


def _room(context: Context, spare: int | None, cores: float) -> int | None:
    """Workers that have room on ``spare`` cores, where each keeps ``cores`` busy. None where there are
    enough: the device computes the step, and two workers need not take turns."""
    if spare is not None:
        return int(spare / cores)
    return 0 if cores > 1 and 2 * cores > (context.profile.facts.flags.cpu_count or math.inf) else None


def _stalled(context: Context, lines: list[LineCost], wait: float) -> float:
    """What loading waits for cores, where it is a good part of the step: copies into batches for torch's
    threads, and the main thread by itself."""
    if not context.on_gpu:
        return 0.0  # what else the step does waits for them as well
    queued = float(context.profile.totals.get("queued_ms", 0.0)) * wait / context.step_ms
    stalled = min(wait, sum(cost.stalled_ms for cost in lines) + queued)
    return stalled if context.share(stalled) >= CROWDED_PERCENT else 0.0


def _picked(context: Context, site: Site, lines: list[LineCost], wait: float, rows: bool) -> Draft:
    """``rows`` of tensors in memory (a worker would copy each batch once more, which was 56 % slower), or
    batches that take too little time for a worker."""
    left = _stacking(lines) if rows else 0.0
    return context.draft(
        site.place,
        "The training process builds each batch sample by sample. Each step waits {spent} for it "
        "({share} of the step).",
        context.spent("exposed wait", wait),
        cause=iterated_at(context, site),
        cost_ms=wait,
        saving_ms=wait * (1 - left),
        change=Scale(tuple(cost.place for cost in lines), left, left, assumed=True) if rows else None,
        fixes=[
            *([partial(whole_batches, context, site)] if rows else []),
            "worker processes would copy each batch once more, which costs about as much: keep the data as "
            "tensors and index whole batches, `for rows in torch.randperm(len(x)).split(batch_size): "
            "x[rows], y[rows]`",
        ],
    )


def _stacking(lines: list[LineCost]) -> float:
    """The share of the loading time that remains with one index for each batch: it copies the rows, too."""
    loading = sum(cost.loader_ms for cost in lines)
    copies = sum(op.cpu_ms for cost in lines for op in cost.ops if op.outer and op.name == "aten::stack")
    return min(1.0, max(INDEX_SHARE, copies / loading)) if loading > 0 else 1.0


def _sensible(context: Context, site: Site, batch: float, rest: float, room: int | None, cores: float) -> int:
    """Twice as many workers as keep up with the ``rest`` of the step, ``batch`` being what one costs (batches
    differ, and the step gets shorter with the next fix), and two at least; no more than batches, or than
    there is ``room`` for (where there is none, all cores), where each keeps ``cores`` of them busy."""
    rest = max(rest, batch / 32)
    most = room or int((context.profile.facts.flags.cpu_count or 1) / cores)
    batches = facts_of(Loader, site).batches_per_epoch or 64
    return max(1, min(max(2, math.ceil(2 * batch / rest)), most, batches, 32))


def _fix(context: Context, site: Site, workers: int) -> Fix:
    if iterates_itself(context, site):
        raise Refused("each worker would iterate over the whole dataset: split it by worker first")
    if any(cost.kernels and cost.place not in site.uses for cost in waits(context, site)):
        raise Refused("the dataset uses the device, which worker processes cannot: do that in the loop")
    if _imported_again(context):
        raise Refused(
            'workers import the script again, and its loop is not under `if __name__ == "__main__"`'
        )
    title = f"Use {workers} worker processes"
    return change_loader(context, site, title, num_workers=str(workers), persistent_workers="True")


def _imported_again(context: Context) -> bool:
    """Whether starting a worker would run the script's loop again (no fork from Python 3.14 on)."""
    manifest = context.profile.manifest
    version = tuple(int(part) for part in manifest.python_version.split(".")[:2] if part.isdigit())
    return version >= (3, 14) and "__name__" not in (context.text(manifest.script) or "")
