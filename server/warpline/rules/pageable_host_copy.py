"""Batches are copied to the device from pageable memory, and the host waits for each copy.

## What it does

Finds copies from pageable memory to the device, by their measured time and the wait of the host, and
points to the loader that could pin its batches and to the copies that could then overlap.

## Why is this slow

The device can read host memory directly only if it is pinned. The host first copies a pageable batch
into a pinned buffer, piece by piece, and waits; `non_blocking=True` alone changes nothing. From pinned
memory, the copy takes about half the time and overlaps with the previous step.

## Example

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=256, num_workers=8)
#^ found; site loader num_workers=8 pin_memory=false
for images, labels in loader:  #> cost cpu_ms=0.2; use loader
    images = images.to(device)  #> cost device_ms=6 copy_ms=6 cpu_ms=6
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=6 kind=copy; site to pinned=false
    labels = labels.to(device)  #> cost device_ms=0.1 cpu_ms=0.1 copy_ms=0.1
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=0.1 kind=copy
    train(images, labels)  #> cost device_ms=30
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=256, num_workers=8, pin_memory=True)
for images, labels in loader:
    images = images.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
    train(images, labels)
```

## Example

The copies do not wait already, but the loader does not pin:

```python
from torch.utils.data import DataLoader

loader = DataLoader(tiles, batch_size=64, num_workers=8)
#^ found; site loader num_workers=8 pin_memory=false
for tile, mask in loader:  #> use loader
    tile = tile.to("cuda", non_blocking=True)
    #^ cost cpu_ms=9 device_ms=9 copy_ms=9
    #^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=9 bytes=38535168
    train(tile, mask)  #> cost device_ms=20
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(tiles, batch_size=64, num_workers=8, pin_memory=True)
for tile, mask in loader:
    tile = tile.to("cuda", non_blocking=True)
    train(tile, mask)
```

## Example

The collate function copies. What the loader pins must still be on the host, so its settings do not help:

```python
from torch.utils.data import DataLoader

def collate(samples):
    tiles = stacked(samples)  #> cost cpu_ms=3 idle_ms=3 loader_ms=3
    return tiles.to("cuda")
    #^ found; cost cpu_ms=9 device_ms=9 copy_ms=9 idle_ms=1 loader_ms=9
    #^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=9 bytes=38535168

loader = DataLoader(tiles, batch_size=64, collate_fn=collate)  #> site loader num_workers=0 pin_memory=false
for batch in loader:  #> cost cpu_ms=0.1 loader_ms=0.1; use loader
    train(batch)  #> cost device_ms=20
```

## Use instead

Let the collate function return tensors of the host, pin them with `pin_memory=True`, and copy the batch in
the loop with `non_blocking=True`.

## Example

The loader pins, but its batches are objects of a class without a method `pin_memory`, which stay as they are:

```python
from torch.utils.data import DataLoader

class Sweeps:
#^ found
    def __init__(self, samples):
        self.x, self.y = map(torch.stack, zip(*samples))

loader = DataLoader(dataset, 32, collate_fn=Sweeps, num_workers=8, pin_memory=True)
#^ site loader pin_memory=true batch_type=Sweeps batch_file=/example/train.py batch_tensors='["x","y"]'
for batch in loader:  #> use loader
    x = batch.x.to(device, non_blocking=True)  #> cost device_ms=6 copy_ms=6
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=6 kind=copy
    train(x)  #> cost device_ms=30
```

## Use instead

```python
from torch.utils.data import DataLoader

class Sweeps:
    def __init__(self, samples):
        self.x, self.y = map(torch.stack, zip(*samples))

    def pin_memory(self):
        self.x = self.x.pin_memory()
        self.y = self.y.pin_memory()
        return self

loader = DataLoader(dataset, 32, collate_fn=Sweeps, num_workers=8, pin_memory=True)
for batch in loader:
    x = batch.x.to(device, non_blocking=True)
    train(x)
```

## Example

No loader: a thread makes the batches, each in memory of its own.

```python
import queue
import torch

ready = queue.Queue(maxsize=3)

def gather(rows, plan):
    for picked in plan:
        batch = torch.empty(512, 48, 1024)
        torch.index_select(rows, 0, picked, out=batch)
        ready.put(batch)
    ready.put(None)

def batches():
    while (batch := ready.get()) is not None:
        yield batch

for waves in batches():
    x = waves.to(device)
    #^ found; cost device_ms=9 copy_ms=9 cpu_ms=9
    #^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=9 bytes=100663296
    train(x)  #> cost device_ms=20
```

## Use instead

```python
import queue
import torch

ready = queue.Queue(maxsize=3)

def gather(rows, plan):
    for picked in plan:
        batch = torch.empty(512, 48, 1024, pin_memory=torch.cuda.is_available())
        torch.index_select(rows, 0, picked, out=batch)
        ready.put(batch)
    ready.put(None)

def batches():
    while (batch := ready.get()) is not None:
        yield batch

for waves in batches():
    x = waves.to(device, non_blocking=True)
    train(x)
```

## Example

A tensor that outlives the steps, and each step copies some of its rows:

```python
import torch

class Archive:
    def __init__(self, table):
        self.traces = torch.from_numpy(table)
        #^ found

    def runs(self, starts):
        for start in starts:
            yield self.traces[start : start + 1024].to(device, non_blocking=True)
            #^ cost device_ms=9 copy_ms=9 cpu_ms=9
            #^ kernel 'Memcpy HtoD (Pageable -> Device)' kind=copy device_ms=9 bytes=33554432
            #^ node aten.slice.Tensor args=[%9,0,309,1333] shape=[1024,8192]
            #^ node aten._to_copy.default args=[%0] shape=[1024,8192]; tensor %9 shape=[20000,8192]

for x in Archive(survey()).runs(starts):
    train(x)  #> cost device_ms=20
```

## Use instead

```python
import torch

class Archive:
    def __init__(self, table):
        self.traces = torch.from_numpy(table)
        if torch.cuda.is_available():
            self.traces = self.traces.pin_memory()

    def runs(self, starts):
        for start in starts:
            yield self.traces[start : start + 1024].to(device, non_blocking=True)

for x in Archive(survey()).runs(starts):
    train(x)
```

## Fix safety

Safe: the stream keeps the order, so the same values arrive. Pinned memory cannot be swapped out, so the
host needs enough of it for all prefetched batches. Without a loader, the edit is offered where each batch is
a new tensor of `torch.empty` or the like, or rows of one that nothing writes to later: a buffer that is
filled again may still be read by the copy before. A tensor that would not fit into the host's free memory, as
it was recorded with the copy, is not pinned. Rows that are picked by a list are new memory, pinned or not.

## References

- [Memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
- [pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import libcst as cst

from warpline.model.change import OverlapCopies
from warpline.model.costs import value
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, size
from warpline.rulekit.copies import host_to_device, loop_over, move_calls, never_wait, without_waiting
from warpline.rulekit.fresh import pinned_where_made
from warpline.rulekit.kept_on_host import Kept, kept_on_host, pin, too_large
from warpline.rulekit.loaders import change_loader, edit_site
from warpline.syntax.source import Statement
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_PINS_ITSELF = "give `{name}` a method `pin_memory` that pins its tensors and returns the object"

#: How many times faster a copy from pinned memory runs.
PINNED_RATE = value("pinned-copy")
_TOO_LARGE = " All of the tensor would take up to {needed} of pinned memory, and the host had {free} free."
_LOADING = (
    "this is a part of loading: leave the tensors on the host there, let the loader pin the batch, and copy "
    "it in the loop"
)
_UNPINNED = " A loader pins objects of `{type}` only if they have a method `pin_memory`."


class PageableHostCopy(Rule):
    area = "data"
    needs = ("kernels",)
    covers = ("blocking-host-copy",)

    def find(self, context: Context) -> Iterator[Draft]:
        copies = [cost for cost in context.profile.lines if host_to_device(cost, pageable=True) > 0]
        for site, costs in _by_loader(context, copies):
            time = sum(host_to_device(cost, pageable=True) for cost in costs)
            if not context.matters(time):
                continue
            hottest = max(costs, key=lambda cost: host_to_device(cost, pageable=True))
            place = hottest.place
            places = [cost.place for cost in costs]
            loading = _in_loading(context, hottest)
            kept = None if loading or site is None else unpinned(context, site)
            made = {} if loading or site is not None else _kept_on_host(context, places)
            own = made.get(place)
            large = too_large(context, own, [place]) if isinstance(own, list) else None
            at = own[0].place if isinstance(own, list) and large is None else None
            yield context.draft(
                at or _place(context, site, kept, place),
                "The host waits for copies from pageable memory to the device: {spent} of each step "
                "({share})."
                + (_UNPINNED.format(type=kept.name) if kept is not None else "")
                + (_TOO_LARGE if large is not None else ""),
                {
                    **context.spent("pageable copies", time),
                    **(
                        {
                            "needed": size("pinned memory for all of the tensor, at most", large[0]),
                            "free": size("free memory of the host", large[1]),
                        }
                        if large is not None
                        else {}
                    ),
                },
                cause=place,
                cost_ms=time,
                change=OverlapCopies(tuple(places), PINNED_RATE),
                fixes=[_LOADING if loading else partial(_fix, context, site, kept, places, made)],
            )


def _place(
    context: Context, site: Site | None, kept: Unpinned | None, hottest: tuple[str, int]
) -> tuple[str, int]:
    """Where to change it: the loader; where that pins already, the class of its batches, or, where they are
    pinned, the line that copies something else."""
    if site is None:
        return hottest
    loader = facts_of(Loader, site)
    if not loader.pin_memory or loader.batch_type is None:
        return edit_site(context, site, "pin_memory")
    return kept.place if kept is not None else hottest


def _by_loader(context: Context, copies: list[LineCost]) -> Iterator[tuple[Site | None, list[LineCost]]]:
    """Copies with the loader of their data; None if it is unknown, or if the copy is part of loading: a
    loader can only pin tensors on the host."""
    loaders = [site for site in context.sites("loader") if site.uses]
    groups: dict[int, list[LineCost]] = {}
    for cost in copies:
        if _in_loading(context, cost):
            groups.setdefault(-1, []).append(cost)
            continue
        around = loop_over(context, cost.place)
        own = [i for i, site in enumerate(loaders) if set(around) & set(site.uses)]
        if not own and len(loaders) == 1:
            own = [0]
        groups.setdefault(own[0] if own else -1, []).append(cost)
    for index, costs in groups.items():
        yield (loaders[index] if index >= 0 else None), costs


def _in_loading(context: Context, cost: LineCost) -> bool:
    """Whether a line of a dataset or a collate function, in the training process, makes the copy."""
    iterating = {place for site in context.sites("loader") for place in site.uses}
    return cost.loader_ms > 0 and cost.place not in iterating


def _fix(
    context: Context,
    site: Site | None,
    kept: Unpinned | None,
    places: list[tuple[str, int]],
    made: Mapping[tuple[str, int], list[Kept] | Refused],
) -> Fix:
    if site is None:
        return _made_pinned(context, places, made)
    loader = facts_of(Loader, site)
    if loader.pin_memory and kept is None:
        raise Refused(
            "the loader pins, but its batches are of a type without a `pin_memory` method"
            if loader.batch_type is None
            else "the loader pins its batches, but what is copied here was made on the host after that: "
            "copy the batch as it is, and compute on the device"
        )
    own = [place for place in places if not _by_library(context, place)]
    asked = never_wait(context, own)
    others = {} if asked or not own else without_waiting(context, own)
    also = " and copy them with non_blocking=True" if others else ""
    if kept is not None:
        pins_itself(kept, others.setdefault(kept.source.path, Edits(kept.source)))
    if loader.pin_memory:
        first, *rest = others.values()
        return first.fix("Pin the batches" + also, "safe", *rest)
    title = "Pin the loader's batches" + also
    return change_loader(context, site, title, others=others.values(), safe=True, pin_memory="True")


def _kept_on_host(
    context: Context, places: list[tuple[str, int]]
) -> dict[tuple[str, int], list[Kept] | Refused]:
    """The tensors that outlive the steps where a place copies parts of them, or why none is known."""
    found: dict[tuple[str, int], list[Kept] | Refused] = {}
    for place in places:
        try:
            found[place] = kept_on_host(context, place)
        except Refused as reason:
            found[place] = reason
    return found


def _made_pinned(
    context: Context,
    places: list[tuple[str, int]],
    made: Mapping[tuple[str, int], list[Kept] | Refused],
) -> Fix:
    """Tensors that no loader gives, pinned where each is made."""
    asked = never_wait(context, places)
    edits = {} if asked else without_waiting(context, places)
    pinned: set[tuple[str, int]] = set()
    for place in places:
        source, own = context.source(place[0]), made[place]
        if isinstance(own, list):
            if too_large(context, own, [place]) is not None:
                raise Refused("pinned memory for all of the copied tensor may not fit: pin each part")
            for one in own:
                if one.place not in pinned:
                    pin(context, one, edits.setdefault(one.source.path, Edits(one.source)), place)
                pinned.add(one.place)
            continue
        try:
            pinned_where_made(source, place[1], edits.setdefault(place[0], Edits(source)))
        except Refused:
            raise own from None
    first, *rest = edits.values()
    also = "" if asked else ", and copy them with non_blocking=True"
    return first.fix("Make the tensors in pinned memory" + also, "safe", *rest)


def _by_library(context: Context, place: tuple[str, int]) -> bool:
    """Whether a library that the line calls makes the copy, as a trainer does."""
    cost = context.cost(*place)
    return cost is not None and bool(cost.inside) and not move_calls(context.source(place[0]), place[1])


@dataclass(frozen=True, slots=True)
class Unpinned:
    """``tensors``: attributes that hold a tensor of the host in every batch, and can be assigned."""

    source: Source
    owner: cst.ClassDef
    tensors: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.owner.name.value

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line of ``class``, below its decorators."""
        return self.source.path, self.source.line(self.owner.name)


def unpinned(context: Context, site: Site) -> Unpinned | None:
    """The class of the loader's batches, where torch finds no way to pin them; None where it does, where the
    run does not say, and where the class has the method by now."""
    loader = facts_of(Loader, site)
    if loader.batch_file is None or loader.batch_type is None:
        return None
    source = context.source(loader.batch_file)
    name = loader.batch_type.rpartition(".")[2]
    found = [one for one in source.nodes(cst.ClassDef) if one.name.value == name]
    if len(found) != 1 or "def pin_memory" in source.code(found[0]):
        return None
    return Unpinned(source, found[0], tuple(loader.batch_tensors or ()))


def pins_itself(kept: Unpinned, edits: Edits) -> None:
    """The method, at the end of the class. Raises Refused."""
    body = kept.owner.body.body
    last = body[-1] if body and isinstance(kept.owner.body, cst.IndentedBlock) else None
    if not kept.tensors or not isinstance(last, Statement):
        raise Refused(_PINS_ITSELF.format(name=kept.name))
    lines = [f"    self.{name} = self.{name}.pin_memory()" for name in kept.tensors]
    edits.insert_after(last, "\n".join(["def pin_memory(self):", *lines, "    return self"]), apart=True)
