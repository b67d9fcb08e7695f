"""The loader's workers restart in every epoch, and the step waits for them.

## What it does

Finds a `DataLoader` that starts its workers again in each epoch, because it has no `persistent_workers` or
because the script makes a new loader for each epoch. It measures the cost of an epoch's start: making the
iterator, waiting for the first batch, ending the workers of the previous epoch, and what the first step
takes longer.

## Why is this slow

All workers stop at the end of an epoch. The next epoch starts them again, imports the modules, copies
the dataset and fills the queue. The device is idle meanwhile. Forked workers share the memory of the
training process, which then copies each page that it writes to: its first step is slower.

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

## Example

An epoch that is longer than what was measured: its start was timed when the script began.

```python
#> workers batch_ms=100
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8)
#^ found; site loader num_workers=8 persistent_workers=false batches_per_epoch=200 start_ms=900
for epoch in range(90):
    for images, labels in loader:  #> cost cpu_ms=0.2 idle_ms=0.2 loader_ms=0.2; use loader
        train(images, labels)  #> cost device_ms=20 step_ms=20
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=8, persistent_workers=True)
for epoch in range(90):
    for images, labels in loader:
        train(images, labels)
```

## Example

Epochs begin in steps that also evaluate. The step time leaves these out, and their waits with them; the gain
is that of whole epochs:

```python
#> workers batch_ms=20; manifest others_share=0.5 timed_ns=(30,)*45; steps device_busy_percent=100
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4)
#^ found; site loader num_workers=4 persistent_workers=false batches_per_epoch=10
#^ also epochs_started=9 starts_timed=5 start_ms=220
for epoch in range(90):
    for images, labels in loader:  #> use loader
        train(images, labels)  #> cost device_ms=30
    evaluate()
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
for epoch in range(90):
    for images, labels in loader:
        train(images, labels)
    evaluate()
```

## Example

A new loader for each epoch has new workers, whatever its settings. Only the author knows why it is made
again:

```python
from torch.utils.data import DataLoader

for epoch in range(90):
    loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
    #^ found; site loader num_workers=4 persistent_workers=true batches_per_epoch=4 epochs_started=12 made=12
    for images, labels in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
        train(images, labels)  #> cost device_ms=20
```

## Use instead

Make the loader once, before the loop over the epochs, with `persistent_workers=True`.

## Example

A function makes the same loader for each epoch:

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __init__(self, count):
        self.gain = np.linspace(0.5, 2.0, count)

    def __getitem__(self, row):
        return clip(row) * self.gain[row]

class Hears:
    def __init__(self, clips, batch):
        self.clips, self.batch = clips, batch

    def batches(self):
        return DataLoader(self.clips, self.batch, num_workers=4)
        #^ found; site loader num_workers=4 persistent_workers=false batches_per_epoch=4
        #^ also epochs_started=9 made=9 dataset_file=/example/train.py dataset_line=8

for epoch in range(90):
    for clips in hears.batches():  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
        train(clips)  #> cost device_ms=20
```

## Use instead

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __init__(self, count):
        self.gain = np.linspace(0.5, 2.0, count)

    def __getitem__(self, row):
        return clip(row) * self.gain[row]

class Hears:
    def __init__(self, clips, batch):
        self.clips, self.batch = clips, batch

    def batches(self):
        return DataLoader(self.clips, self.batch, num_workers=4, persistent_workers=True)

loader = hears.batches()
for epoch in range(90):
    for clips in loader:
        train(clips)
```

## Example

The loop itself makes it:

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __init__(self, count):
        self.gain = np.linspace(0.5, 2.0, count)

    def __getitem__(self, row):
        return clip(row) * self.gain[row]

clips = Clips(4096)
for epoch in range(90):
    loader = DataLoader(clips, batch_size=64, shuffle=True, num_workers=4)
    #^ found; site loader num_workers=4 persistent_workers=false batches_per_epoch=4
    #^ also epochs_started=9 made=9 dataset_file=/example/train.py dataset_line=8
    for rows in loader:  #> cost cpu_ms=30 idle_ms=30 loader_ms=30; use loader
        train(rows)  #> cost device_ms=20
```

## Use instead

```python
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Clips(Dataset):
    def __init__(self, count):
        self.gain = np.linspace(0.5, 2.0, count)

    def __getitem__(self, row):
        return clip(row) * self.gain[row]

clips = Clips(4096)
loader = DataLoader(clips, batch_size=64, shuffle=True, num_workers=4, persistent_workers=True)
for epoch in range(90):
    for rows in loader:
        train(rows)
```

## Fix safety

Unsafe: workers keep their copy of the dataset and their random state between epochs. They do not see
changes that the training process makes to the dataset between epochs. Nor do samples that are made once,
where they are the same in each epoch (`loader-without-workers` says more). A new loader for each epoch is
made once only where the loop makes it, or a function does nothing but return it, of arguments that stay the
same.

## References

- [DataLoader, persistent_workers](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import libcst as cst

from warpline.model.report import Evidence, Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms, percent
from warpline.rulekit.constants import changed
from warpline.rulekit.kept_samples import kept_samples, made_once
from warpline.rulekit.loaders import (
    begins_again,
    change_loader,
    edit_site,
    iterated_at,
    loader_call,
    setting,
    slowed_ms,
    start_ms,
    taking_ms,
    unpacked_at,
    waited_ms,
    waits,
)
from warpline.syntax.edits import free_name
from warpline.wire.run import Site
from warpline.wire.sites import Loader, facts_of

_ONCE = "Make the loader once, and keep its workers (persistent_workers)"
_NO_SPACE = cst.SimpleWhitespace("")
_SLOWED = " The first step after a restart takes {slowed} more, as it copies memory that the workers share."
_BY_HAND = "make the loader once, unless each epoch needs a different one"

#: Epochs longer than this many batches hide the start among the other waits.
SHORT_EPOCH = 64


class LoaderWorkersRestart(Rule):
    area = "data"
    covers = ("too-few-loader-workers",)

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("loader"):
            loader = facts_of(Loader, site)
            if not loader.num_workers or (
                loader.persistent_workers is not False and not _is_made_again(loader)
            ):
                continue
            batches = loader.batches_per_epoch or loader.batches_seen
            if not batches:
                continue
            if (loader.epochs_started or 0) >= 2 and (loader.starts_timed or batches <= SHORT_EPOCH):
                yield from _seen(context, site, loader, batches)
            elif (loader.epochs_started or 0) >= 2 or begins_again(context, site):
                yield from _to_come(context, site, loader, batches)


def _seen(context: Context, site: Site, loader: Loader, batches: int) -> Iterator[Draft]:
    """Epochs began in the measured steps."""
    whole, start = waited_ms(context, site), start_ms(context, site)
    wait = whole if start is None else min(whole, start / batches)  # else it is for slow workers
    left_out = _left_out(context, site)
    if left_out > wait / context.step_ms and context.matters(left_out * context.step_ms):
        yield from _beside_steps(context, site, loader, batches, left_out)
        return
    slowed = slowed_ms(context, site)
    more = slowed / batches if context.matters(slowed / batches) else 0.0
    if not context.matters(wait + more):
        return
    said = (
        _how(loader) + "The workers restart every {batches} batches ({started} times so far): each step "
        "waits {spent} for batches on average ({share} of the step)."
    )
    evidence = {
        "batches": count("batches per epoch", batches, "batches"),
        "started": count("epochs started", loader.epochs_started or 0, "epochs"),
    }
    if more:
        said += _SLOWED
        evidence["slowed"] = ms("first step after a restart, more than others", slowed)
    # Bounds: no simulation, as the captured steps seldom hold the beginning of an epoch.
    workers = context.profile.facts.workers
    kept = kept_samples(context, site, waits(context, site), whole) if workers is not None else None
    if (
        workers is not None
        and kept is not None
        and kept.left_ms <= whole - wait + taking_ms(workers.batch_ms)
    ):
        at = _place(context, site, loader)
        draft = made_once(context, site, f"{said} ", whole, kept, evidence, at=at)
        yield replace(draft, change=None)
        return
    yield context.draft(
        _place(context, site, loader),
        said + _advice(loader),
        {**evidence, **context.spent("exposed wait", wait)},
        cause=iterated_at(context, site),
        cost_ms=wait + more,
        fixes=[partial(_fix, context, site)],
    )


def _left_out(context: Context, site: Site) -> float:
    """The part of the whole time, 0 to 1, that beginnings of epochs took while steps were timed. They are in
    steps that also evaluate, which the step time leaves out. 0 where none are left out."""
    others = context.profile.manifest.others_share
    if not 0 < others < 1:
        return 0.0
    epoch_ms = context.step_ms / (1 - others)  # a step, and its share of what is left out
    began = [(one, facts_of(Loader, one).starts_timed or 0) for one in context.sites("loader")]
    steps = len(context.profile.manifest.timed_ns) + max((times for _, times in began), default=0)
    waited = {one.place: times * (start_ms(context, one) or 0.0) / steps for one, times in began if times}
    whole = sum(waited.values())
    most = epoch_ms - context.step_ms + context.idle_ms()  # the device may have been at work meanwhile
    return waited.get(site.place, 0.0) * min(1.0, most / whole) / epoch_ms if whole else 0.0


def _beside_steps(
    context: Context, site: Site, loader: Loader, batches: int, share: float
) -> Iterator[Draft]:
    """Epochs began in steps that are not measured, as they also evaluate."""
    yield _of_epoch(
        context,
        site,
        loader,
        batches,
        "The workers restart every {batches} batches ({started} times so far): {start} each time, which is "
        "{part} of the whole time. The step time leaves it out, with the steps that evaluate.",
        share,
        {"started": count("epochs started", loader.epochs_started or 0, "epochs")},
    )


def _to_come(context: Context, site: Site, loader: Loader, batches: int) -> Iterator[Draft]:
    """No epoch began while steps were timed."""
    start = start_ms(context, site)
    if start is None or context.profile.facts.workers is None:  # how much of it is the first batch?
        return
    yield _of_epoch(
        context,
        site,
        loader,
        batches,
        "The workers restart every {batches} batches. No restart was measured; earlier steps waited {start} "
        "for one, which is {part} of an epoch's time.",
        start / (batches * context.step_ms + start),
        {},
    )


def _of_epoch(
    context: Context,
    site: Site,
    loader: Loader,
    batches: int,
    said: str,
    share: float,
    more: dict[str, Evidence],
) -> Draft:
    """The finding where the measured steps do not have their part of the wait: what saving the ``share`` of
    an epoch is worth is told as if they had."""
    return context.draft(
        _place(context, site, loader),
        _how(loader) + said + _advice(loader),
        {
            "batches": count("batches per epoch", batches, "batches"),
            "start": ms("start of an epoch", start_ms(context, site) or 0.0),
            "part": percent("start of an epoch", 100 * share, "epoch"),
            **more,
        },
        cause=iterated_at(context, site),
        cost_ms=share * context.step_ms,
        fixes=[partial(_fix, context, site)],
    )


def _is_made_again(loader: Loader) -> bool:
    """Whether the script makes a new loader for each epoch."""
    return (loader.made or 1) > 1


def _place(context: Context, site: Site, loader: Loader) -> tuple[str, int]:
    if _is_made_again(loader):
        return site.place
    place = edit_site(context, site, "persistent_workers")
    # It goes beside the number of workers.
    beside = unpacked_at(context, site) if place == site.place else None
    return beside if beside is not None and setting(context, site, "num_workers") is not None else place


def _how(loader: Loader) -> str:
    return "A new loader is made for each epoch. " if _is_made_again(loader) else ""


def _advice(loader: Loader) -> str:
    advice = " Make the loader once, before the epochs, with persistent_workers=True."
    return advice if _is_made_again(loader) else ""


def _fix(context: Context, site: Site) -> Fix:
    if _is_made_again(facts_of(Loader, site)):
        return before_epochs(context, site)
    title = "Keep the workers between epochs (persistent_workers)"
    return change_loader(context, site, title, persistent_workers="True")


def before_epochs(context: Context, site: Site) -> Fix:
    """The call of the function that makes the loader before the loop over the epochs, and workers that stay.
    Raises Refused where the loaders, or their dataset, may differ from epoch to epoch."""
    source, call = loader_call(context, site)
    function = _maker(source, call)
    if function is None:
        return _out_of_loop(context, site, source, call)
    calls = [*context.calls(function.name.value)]
    if len(calls) != 1 or not _is_settled(context, source, function, call):
        raise Refused(_BY_HAND)
    where, made = calls[0]
    loop = next((one for one in where.loops(made) if where.inside(made, one.body)), None)
    if loop is None or _is_given_anew(where, made, loop) or _may_change(context, site):
        raise Refused(_BY_HAND)
    edits = Edits(where)
    kept = free_name(where, "loader", "kept_loader", "same_loader")
    edits.insert_before(loop, f"{kept} = {where.code(made)}")
    edits.replace(made, kept)
    return change_loader(context, site, _ONCE, others=[edits], persistent_workers="True")


def _out_of_loop(context: Context, site: Site, source: Source, call: cst.Call) -> Fix:
    """The constructor before the loop over the epochs that it stands in itself."""
    loop = next((one for one in source.loops(call) if source.inside(call, one.body)), None)
    if (
        loop is None
        or not _is_settled(context, source, source.scope(call), call)
        or _is_given_anew(source, call, loop)
        or _may_change(context, site)
        or source.unpacked(call)
    ):
        raise Refused(_BY_HAND)
    others = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != "persistent_workers"]
    keeps = cst.Arg(cst.Name("True"), cst.Name("persistent_workers"), cst.AssignEqual(_NO_SPACE, _NO_SPACE))
    args = [*others[:-1], *(one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in others[-1:]), keeps]
    code = source.module.code_for_node(call.with_changes(args=args))
    name, edits = _named(source, call), Edits(source)
    statement = source.statement(call)
    once = name is not None and len(source.bindings(name, source.scope(call))) == 1
    if once and isinstance(statement, cst.SimpleStatementLine) and statement in loop.body.body:
        edits.insert_before(loop, f"{name} = {code}")
        edits.remove(statement)
    else:
        kept = free_name(source, "loader", "kept_loader", "same_loader")
        edits.insert_before(loop, f"{kept} = {code}")
        edits.replace(call, kept)
    return edits.fix(_ONCE, "unsafe")


def _named(source: Source, call: cst.Call) -> str | None:
    """The name in ``name = DataLoader(…)``."""
    above = source.parent(call)
    target = above.targets[0].target if isinstance(above, cst.Assign) and len(above.targets) == 1 else None
    return target.value if isinstance(target, cst.Name) else None


def _maker(source: Source, call: cst.Call) -> cst.FunctionDef | None:
    """The function that returns ``call`` and does nothing else."""
    function = source.enclosing(call, cst.FunctionDef)
    if function is None or function.decorators or not isinstance(source.parent(call), cst.Return):
        return None
    return function if len(source.block(call)) == 1 and source.statement(call) in function.body.body else None


def _is_settled(context: Context, source: Source, scope: cst.CSTNode, call: cst.Call) -> bool:
    """Whether the arguments of ``call`` are the same each time that the function ``scope`` has the same: its
    own parameters, what the file names once, and attributes that only an ``__init__`` gives."""
    params = source.nodes(cst.Param, within=scope) if isinstance(scope, cst.FunctionDef) else ()
    given = {one.name.value for one in params}
    args = [arg.value for arg in call.args]
    names = [one for arg in args for one in source.nodes(cst.Name, within=arg) if source.is_value(one)]
    named = {one.value for one in names} - given
    attributes = {one.attr.value for arg in args for one in source.nodes(cst.Attribute, within=arg)}
    bound = [one.value for one in source.nodes(cst.Name) if one.value in named and source.binds(one)]
    again = any(source.nodes(cst.Call, cst.Await, within=arg) for arg in args)
    return (
        not again
        and len(bound) == len(set(bound))
        and not any(
            one.attr.value in attributes and other.binds(one) and not _in_init(other, one)
            for other in context.sources()
            for one in other.nodes(cst.Attribute)
        )
    )


def _in_init(source: Source, node: cst.CSTNode) -> bool:
    function = source.enclosing(node, cst.FunctionDef)
    return function is not None and function.name.value == "__init__"


def _is_given_anew(source: Source, call: cst.Call, loop: cst.For | cst.While) -> bool:
    """Whether the loop gives a name in ``call`` another value."""
    read = {source.code(one) for one in source.nodes(cst.Name, cst.Attribute, within=call)}
    return any(source.bindings(code, loop) for code in read)


def _may_change(context: Context, site: Site) -> bool:
    """Whether anything but its ``__init__`` may write into the dataset. Workers that stay keep their copy."""
    loader = facts_of(Loader, site)
    source, line = context.source(loader.dataset_file or ""), loader.dataset_line or 0
    owner = next(iter(source.at(line, cst.ClassDef)), None)
    made = [one for one in source.nodes(cst.FunctionDef, within=owner) if one.name.value == "__init__"]
    if owner is None or len(made) != 1:
        return True
    own = source.nodes(cst.Attribute, within=owner)
    return changed(
        context, {one.attr.value for one in own if source.code(one.value) == "self"}, made[0], owner
    )
