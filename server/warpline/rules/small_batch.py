"""The batch is too small to keep the device busy, and there is memory for more.

## What it does

Finds steps in which the device is idle while the host launches, with most of its memory free, and
makes the loader's batch larger; where gradients are accumulated over several batches, by as much
fewer of them, so that an update sees the same samples.

## Why is this slow

The host's work for a step is the same for two samples or two hundred. While the kernels are shorter
than their launches, a larger batch takes no longer, and each sample costs less.

## Example

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=8)
#^ found; site loader batch_size=4 num_workers=8
for inputs, labels in loader:  #> cost cpu_ms=0.1; use loader
    loss = model(inputs, labels)
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
    optimizer.step()
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=8)
for inputs, labels in loader:
    loss = model(inputs, labels)
    loss.backward()
    optimizer.step()
```

## Example

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from torch.utils.data import DataLoader

ACCUMULATE = 8
loader = DataLoader(dataset, batch_size=4, num_workers=8)
#^ found; site loader batch_size=4 num_workers=8
for i, batch in enumerate(loader):  #> cost cpu_ms=0.1; use loader
    loss = model(batch) / ACCUMULATE
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
    if (i + 1) % ACCUMULATE == 0:
        optimizer.step()
```

## Use instead

```python
from torch.utils.data import DataLoader

ACCUMULATE = 4
loader = DataLoader(dataset, batch_size=8, num_workers=8)
for i, batch in enumerate(loader):
    loss = model(batch) / ACCUMULATE
    loss.backward()
    if (i + 1) % ACCUMULATE == 0:
        optimizer.step()
```

## Near misses

The memory is full:

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=140000000000
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=4)  #> site loader batch_size=4 num_workers=8
for batch in loader:  #> use loader
    loss = model(batch)  #> cost step_ms=40 device_ms=12 idle_ms=28 cpu_ms=40 launches=1500
    loss.backward()
```

The device is busy:

```python
#> steps step_ms=40 device_busy_percent=97; memory peak_bytes=4000000000
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=4)  #> site loader batch_size=4 num_workers=8
for batch in loader:  #> use loader
    loss = model(batch)  #> cost step_ms=40 device_ms=38 idle_ms=2 cpu_ms=40 launches=1500
    loss.backward()
```

The device waits for the loader, which a larger batch would only make slower:

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=4)  #> site loader batch_size=4 num_workers=0
for batch in loader:  #> cost step_ms=28 cpu_ms=28 idle_ms=28 loader_ms=28; use loader
    loss = model(batch)  #> cost step_ms=12 device_ms=12 launches=100
    loss.backward()
```

## Fix safety

Unsafe: an update sees more samples (unless gradients are accumulated, when it sees the same), so the
learning rate may have to follow; batch norm takes its means over more of them.

## References

- [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import LargerBatch
from warpline.model.report import Fix
from warpline.model.run import Site
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms, percent
from warpline.rulekit.launches import launching_ms
from warpline.rulekit.loaders import change_loader, edit_site, setting, whence
from warpline.rulekit.training import TrainingStep, training_steps

_BUSY_PERCENT = 70.0
#: More of the device's memory than this, and twice the batch may not fit.
_MEMORY_SHARE = 0.4
_FACTOR = 2


class SmallBatch(Rule):
    area = "fusion"
    severity = "information"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        profile = context.profile
        peak, whole = profile.facts.memory.get("peak_bytes"), context.device.memory_bytes
        if profile.steps.device_busy_percent >= _BUSY_PERCENT:
            return
        if not peak or not whole:
            context.note("small-batch: the memory in use, or the device's, is not known")
            return
        idle = {cost: waited for cost in profile.lines if (waited := launching_ms(cost)) > 0}
        total = sum(idle.values())
        if peak > _MEMORY_SHARE * whole or total < 0.2 * context.step_ms or not context.matters(total):
            return
        hottest = max(idle, key=lambda cost: idle[cost])
        for site in context.sites("loader"):
            size = site.facts.get("batch_size")
            if not isinstance(size, int) or not context.costs(site.uses):
                continue
            yield context.draft(
                edit_site(context, site, "batch_size"),
                (hottest.file, hottest.line),
                "With {size} samples a batch the device waits {idle} a step, {share}, for launches, and "
                "{memory} of its memory is in use." + whence(context, site, "batch_size"),
                {
                    "size": count("batch size", size, "samples"),
                    "idle": ms("idle while launching", total),
                    "share": percent("idle while launching", context.share(total)),
                    "memory": percent("memory at the peak", 100 * peak / whole, "device memory"),
                },
                cost_ms=total,
                # The same launches for twice the samples: half of the idle time, counted per sample.
                saving_ms=total * (1 - 1 / _FACTOR),
                change=LargerBatch(_FACTOR),
                fixes=[partial(_fix, context, site, size)],
            )
            return


def _fix(context: Context, site: Site, size: int) -> Fix:
    present = setting(context, site, "batch_size")
    if present is not None and present.editable and present.source.literal(present.node) != size:
        raise Refused("the batch size was changed since the run")
    step = next((found for found in training_steps(context) if found.loop is not None), None)
    others = []
    accumulation = _accumulation(step) if step is not None else None
    if accumulation is not None:
        source, number = accumulation
        if number.evaluated_value % _FACTOR:
            raise Refused("the number of accumulated batches is odd")
        edits = Edits(source)
        edits.replace(number, str(number.evaluated_value // _FACTOR))
        others.append(edits)
    values = {"batch_size": str(size * _FACTOR)}
    title = "Double the batch, accumulate half as often" if others else "Double the batch"
    return change_loader(context, site, values, title=title, applicability="unsafe", others=others)


def _accumulation(step: TrainingStep) -> tuple[Source, cst.Integer] | None:
    """The one number N of ``if (i + 1) % N == 0: optimizer.step()``."""
    source = step.source
    for call in source.nodes(cst.Call):
        choice = source.enclosing(call, cst.If) if source.is_named(call.func, "step") else None
        modulo = _modulo(source, choice.test) if choice is not None else None
        if modulo is None:
            continue
        if isinstance(modulo.right, cst.Name):
            name = modulo.right.value
            values = [
                node.value for node in source.nodes(cst.Assign) if source.code(node.targets[0].target) == name
            ]
            if len(values) == 1 and isinstance(values[0], cst.Integer):
                return source, values[0]
        raise Refused("over how many batches gradients are accumulated was not followed to one number")
    return None


def _modulo(source: Source, test: cst.BaseExpression) -> cst.BinaryOperation | None:
    found = (
        node
        for node in source.nodes(cst.BinaryOperation, within=test)
        if isinstance(node.operator, cst.Modulo)
    )
    return next(found, None)
