"""The loader's workers restart in every epoch, and the step waits for them.

## What it does

Finds a `DataLoader` with workers but without `persistent_workers` whose epochs are so short that its
workers started more than once in the run, and measures how long the steps waited for them, those of the
timing window too.

## Why is this slow

All workers stop at the end of an epoch. The next epoch starts them again, imports the modules, copies
the dataset and fills the queue. The device is idle meanwhile.

## Example

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4)
#^ found; site loader num_workers=4 persistent_workers=false batches_per_epoch=4 epochs_started=12
for epoch in range(90):
    for images, labels in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
        train(images, labels)  #> cost device_ms=20
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
for epoch in range(90):
    for images, labels in loader:
        train(images, labels)
```

## Near misses

Long epochs: the captured steps did not wait for workers to start.

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4)
#^ site loader num_workers=4 persistent_workers=false batches_per_epoch=5000 epochs_started=1
for images, labels in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
    train(images, labels)  #> cost device_ms=20
```

Workers that keep running:

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
#^ site loader num_workers=4 persistent_workers=true batches_per_epoch=4 epochs_started=12
for images, labels in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
    train(images, labels)  #> cost device_ms=20
```

## Fix safety

Unsafe: workers keep their copy of the dataset and their random state between epochs. They do not see
changes that the training process makes to the dataset between epochs.

## References

- [DataLoader, persistent_workers](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.loaders import change_loader, edit_site, iterated_at, waited_ms
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

#: Epochs longer than this many batches hide the start among the other waits.
SHORT_EPOCH = 64


class LoaderWorkersRestart(Rule):
    area = "data"
    covers = ("too-few-loader-workers",)

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            loader = facts_of(Loader, site)
            workers = loader.num_workers or 0
            batches = loader.batches_per_epoch
            started = loader.epochs_started or 0
            if workers <= 0 or loader.persistent_workers is not False:
                continue
            if started < 2 or batches is None or batches > SHORT_EPOCH:
                continue
            wait = waited_ms(context, site)
            if not context.matters(wait):
                continue
            # A bound: no simulation, as the captured steps seldom hold the beginning of an epoch.
            yield context.draft(
                edit_site(context, site, "persistent_workers"),
                iterated_at(context, site),
                "The workers restart every {batches} batches ({started} times so far): each step "
                "waits {wait} for batches on average ({share} of the step).",
                {
                    "batches": count("batches per epoch", batches, "batches"),
                    "started": count("epochs started", started, "epochs"),
                    "wait": ms("exposed wait", wait),
                    "share": percent("exposed wait", context.share(wait)),
                },
                cost_ms=wait,
                fixes=[partial(_fix, context, site)],
            )


def _fix(context: Context, site: Site) -> Fix:
    values = {"persistent_workers": "True"}
    title = "Keep the workers between epochs (persistent_workers)"
    return change_loader(context, site, values, title=title, applicability="unsafe")
