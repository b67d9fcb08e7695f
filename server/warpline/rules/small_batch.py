"""The batch is too small to keep the device busy, and memory is free for a larger one.

## What it does

Finds steps in which the device is idle because of launch overhead, or runs kernels that fill less than half
of it, while most of its memory is free. The fix doubles the batch of the loader, or of a loop that slices its
batches (`for at in range(0, count, size)`, `while at < count`, `data.split(size)`), gets them from a
`BatchSampler` or from a generator that gathers them, takes what waits in a queue, at most so many at a time,
or the next rows of an array (`self.at += size`), or draws samples at random (`random.sample(memory, size)`,
`torch.randint(count, (size,))`), also some of each kind. Where the size is `count // parts`, it halves the
parts. No edit is offered where the size comes from a file of settings, and where a loop over rows or prompts
that are there sends them through the model, or through `generate`, one by one: take several in each turn.
If gradients are accumulated, by the loop or by a framework (`gradient_accumulation_steps` of accelerate and
transformers, `accumulate_grad_batches` of Lightning), it halves the number of batches, so that an update
still sees the same samples. The gain is per sample.

Where a step is an update that adds up the gradients of several batches (`for _ in range(PARTS)` with
`loss / PARTS`, `batch.chunk(PARTS)`, `if i % PARTS == 0`, accelerate), the fix makes the batches larger, as
much as memory holds, and their number smaller: an update sees the same samples, and its loss is the same up
to rounding. It is offered where both numbers are written once, and nothing reads them that would change. Of a
batch that is cut by a size (`batch.split(ROWS)`, `for at in range(0, count, ROWS)`) only the size is written:
it is made larger where each loss is divided by the number of equal pieces, weighted by its share of the rows,
or a sum divided by the same for all. Losses that compare the rows of a batch with each other are left alone,
and batches that pass on a hidden state.

The gain is what the host saves, and on the device what short kernels and those that do not fill it save; on a
CPU the operators are tried with as many rows. With larger batches other fixes gain more: of short products in
half precision nothing remains but their launches.

On a CPU it also finds steps without a backward pass that spend much of their time between operators, or in
linear layers and convolutions that mostly wait for their weights from memory, and take hardly longer for
twice the rows (tried beside the script: half of what that could save at most has to be saved). How many
samples an update sees is not a question of speed alone. So of steps that train it finds those that hardly
compute: more than half of their time passes between operators, in lines that do not go through the samples
one by one, or in operators that take no longer for twice the rows (tried), and in the optimizer.

A loader whose epoch is one batch is left alone on any device.

## Why is this slow

The host does the same work for two samples as for two hundred. If the kernels are shorter than their
launches, or have too few blocks to fill the device, a larger batch takes no more time per step, and
less per sample.

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

## Example

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(gradient_accumulation_steps=8)
#^ site framework construction=accelerate.Accelerator with.gradient_accumulation_steps=8
loader = DataLoader(dataset, batch_size=4, num_workers=8)
#^ found; site loader batch_size=4 num_workers=8
for batch in loader:  #> cost cpu_ms=0.1; use loader
    with accelerator.accumulate(model):
        loss = model(batch)
        #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
        accelerator.backward(loss)
        #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
        optimizer.step()
```

## Use instead

```python
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator(gradient_accumulation_steps=4)
loader = DataLoader(dataset, batch_size=8, num_workers=8)
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(batch)
        accelerator.backward(loss)
        optimizer.step()
```

## Example

A loop inside the step:

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
import torch

ROWS = 8  #> found
PARTS = 4
batches = zip(inputs.split(ROWS), labels.split(ROWS))
for update in range(1000):
    for _ in range(PARTS):
        x, y = next(batches)
        loss = loss_of(model(x), y) / PARTS
        #^ cost step_ms=24 device_ms=7 idle_ms=17 cpu_ms=24 launches=2000 calls=4
        #^ op aten::mm shapes=[[8,64],[64,64]]
        loss.backward()  #> cost step_ms=14 device_ms=4 idle_ms=10 cpu_ms=14 launches=1000 calls=4
    optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
```

## Use instead

```python
import torch

ROWS = 32
PARTS = 1
batches = zip(inputs.split(ROWS), labels.split(ROWS))
for update in range(1000):
    for _ in range(PARTS):
        x, y = next(batches)
        loss = loss_of(model(x), y) / PARTS
        loss.backward()
    optimizer.step()
```

## Example

Pieces of one batch:

```python
#> steps step_ms=40 device_busy_percent=30; memory peak_bytes=4000000000
import torch

class Learner:
    rows = 4 if trying else 8  #> found

    def update(self, batch):
        pieces = batch.split(self.rows)  #> cost cpu_ms=0.1 calls=1; op aten::split shapes=[[32,64],[],[]]
        for piece in pieces:
            loss = self.loss(piece) / len(pieces)
            #^ cost step_ms=24 device_ms=7 idle_ms=17 cpu_ms=24 launches=2000 calls=4
            #^ op aten::mm shapes=[[8,64],[64,64]]
            loss.backward()  #> cost step_ms=14 device_ms=4 idle_ms=10 cpu_ms=14 launches=1000 calls=4
        self.optimizer.step()  #> cost step_ms=2 device_ms=1 idle_ms=1 cpu_ms=2 launches=10 calls=1
```

## Use instead

```python
import torch

class Learner:
    rows = 4 if trying else 32

    def update(self, batch):
        pieces = batch.split(self.rows)
        for piece in pieces:
            loss = self.loss(piece) / len(pieces)
            loss.backward()
        self.optimizer.step()
```

## Example

On a CPU, where nothing is trained:

```python
#> device kind=cpu; steps step_ms=10
from torch.utils.data import DataLoader

loader = DataLoader(applications, batch_size=4)
#^ found; site loader batch_size=4 num_workers=0
for rows in loader:  #> cost step_ms=1 cpu_ms=1 idle_ms=1 loader_ms=1; use loader
    scores.append(model(rows))  #> cost step_ms=9 device_ms=5 idle_ms=4 cpu_ms=9 launches=400
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(applications, batch_size=8)
for rows in loader:
    scores.append(model(rows))
```

## Example

On a CPU, a step that trains, and hardly computes:

```python
#> device kind=cpu; steps step_ms=1
from torch.utils.data import DataLoader

loader = DataLoader(flowers, batch_size=4, shuffle=True)
#^ found; site loader batch_size=4 num_workers=0 batches_per_epoch=38
for rows, kinds in loader:  #> cost step_ms=0.1 cpu_ms=0.1 idle_ms=0.1 loader_ms=0.1; use loader
    loss = loss_of(model(rows), kinds)
    #^ cost step_ms=0.5 device_ms=0.15 backward_ms=0.1 idle_ms=0.35 cpu_ms=0.5 launches=60
    loss.backward()
    optimizer.step()  #> cost step_ms=0.4 device_ms=0.1 idle_ms=0.3 cpu_ms=0.4 launches=40
```

## Use instead

```python
from torch.utils.data import DataLoader

loader = DataLoader(flowers, batch_size=8, shuffle=True)
for rows, kinds in loader:
    loss = loss_of(model(rows), kinds)
    loss.backward()
    optimizer.step()
```

## Example

Requests that wait in a queue:

```python
#> device kind=cpu; steps step_ms=10
import collections

waiting = collections.deque()

def oldest(most):
    return [waiting.popleft() for _ in range(min(most, len(waiting)))]  #> cost step_ms=0.1 cpu_ms=0.1 calls=1

while waiting:
    rows = torch.stack(oldest(6))  #> found; cost step_ms=0.1 cpu_ms=0.1 calls=1
    scores.append(model(rows))
    #^ cost step_ms=9 device_ms=5 idle_ms=4 cpu_ms=9 launches=400 calls=1
    #^ op aten::linear shapes=[[6,700],[900,700]] device_ms=5
```

## Use instead

```python
import collections

waiting = collections.deque()

def oldest(most):
    return [waiting.popleft() for _ in range(min(most, len(waiting)))]

while waiting:
    rows = torch.stack(oldest(12))
    scores.append(model(rows))
```

## Fix safety

Unsafe: an update sees more samples (the same samples if gradients are accumulated), so the learning rate may
need to change. Batch norm averages over more samples. Losses that average over what is not ignored weigh
batches otherwise, and dropout draws other numbers, as may a script that draws its samples at random. There as
many steps go through twice the samples, so it takes fewer of them to gain. Where an evaluation draws its
batches by the same function, it sees more samples, too. Where a search puts more into the queue that it takes
from, it visits in another order.

## References

- [Performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from warpline.model import costs
from warpline.model.change import JoinedBatches, LargerBatch, Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.accumulating import Parts, parts_of
from warpline.rulekit.batches import FACTOR, batches
from warpline.rulekit.launches import launching_ms
from warpline.rulekit.loaders import launching_share
from warpline.rulekit.memory import free_bytes
from warpline.rulekit.more_rows import in_fewer, is_once, less_ms, of_lines, of_twice, thin_ms, weights_ms
from warpline.rulekit.saving import Spent

#: More of the device's memory than this, and twice the batch may not fit.
_MEMORY_SHARE = costs.bound("batch-memory")
_MOST_OF_FREE = costs.bound("memory-for-activations")
#: Share of the step, in percent, that each sample must cost less.
_GAIN_PERCENT = 5.0
_MOST = 0.5  # chosen, not fitted
#: What a step that trains must gain: most of it takes no longer for more samples.
_HARDLY_COMPUTES = 100 * _MOST * (1 - 1 / FACTOR)


class SmallBatch(Rule):
    area = "fusion"
    severity = "information"

    def find(self, context: Context) -> Iterator[Draft]:
        on_device = context.can("kernels") and context.can("occupancy")
        on_host = context.can("replacements") and not context.can("kernels")
        parts = parts_of(context) if on_device or on_host else None
        if parts is not None:
            yield from self._of_parts(context, parts)
        elif on_device:
            yield from self._on_a_device(context)
        elif on_host:
            yield from self._between_operators(context)

    def _between_operators(self, context: Context) -> Iterator[Draft]:
        """On a CPU. Of steps that train, only those that hardly compute, by what their operators take or by a
        trial of them: how many samples an update sees is not a question of speed alone."""
        profile = context.profile
        between, products = Spent(profile.lines, launching_ms), Spent(profile.lines, weights_ms)
        waiting, most = between.total, between.total * (1 - 1 / FACTOR)
        shared = products.total * (1 - 1 / FACTOR)
        launching = context.share(most) >= _GAIN_PERCENT and context.matters(most)
        if not launching and context.share(shared) < _GAIN_PERCENT:
            return
        memory = profile.facts.memory
        if memory.peak_bytes and memory.free_bytes is not None and memory.free_bytes < memory.peak_bytes:
            return
        trains = _trains(context)
        spent = between if launching else products
        operators = sum(cost.device_ms for cost in between)
        calls = sum(cost.launches for cost in between)
        for batch in batches(context):
            size = batch.what[1]
            once = sum(spent for cost, spent in between.items() if is_once(context, cost, size))
            least = 0.0 if launching else max(_GAIN_PERCENT, _MOST * context.share(shared))
            if launching:
                said = (
                    "a step spends {idle} ({share}) between operators, and runs {calls} of them in "
                    "{operators}."
                )
                evidence = {
                    "idle": ms("time between operators", waiting),
                    "share": percent("time between operators", context.share(waiting)),
                    "calls": count("operators", round(calls), "per step"),
                    "operators": ms("operators", operators),
                }
            else:
                said = "products with weights take {spent} of a step ({share}), and mostly read the weights."
                evidence = context.spent("products with weights", products.total)
            yield context.draft(
                batch.place,
                f"With {batch.how}, {said} A larger batch takes less time per sample." + batch.whence,
                {"size": count(*batch.what), **evidence},
                cause=spent.hottest.place,
                cost_ms=spent.total,
                saving_ms=once * (1 - 1 / FACTOR) if launching else shared,
                change=Together(
                    (
                        *of_lines(context, {*between, *products}, size),
                        LargerBatch(FACTOR, batch.epoch),
                    )
                ),
                # Only a trial tells which products wait for weights, and which operators take no longer.
                least=_HARDLY_COMPUTES if trains else least,
                fixes=[batch.fix],
            )
            return

    def _on_a_device(self, context: Context) -> Iterator[Draft]:
        profile = context.profile
        part = launching_share(context)
        idle = Spent(profile.lines, lambda cost: part * launching_ms(cost))
        thin = Spent(profile.lines, partial(thin_ms, context))
        waiting, filling = idle.total, thin.total
        # Twice the samples take the same launches, and the same time in kernels that half fill the device.
        saving = (waiting + filling) * (1 - 1 / FACTOR)
        if context.share(saving) < _GAIN_PERCENT or not context.matters(saving):
            return
        peak, whole = profile.facts.memory.peak_bytes, context.device.memory_bytes
        if not peak or not whole:
            context.note("small-batch: the memory in use or the device's memory is unknown")
            return
        if peak > _MEMORY_SHARE * whole:
            return
        hottest = max([*idle, *thin], key=lambda cost: idle.get(cost, 0.0) + thin.get(cost, 0.0))
        for batch in batches(context):
            evidence = {
                "size": count(*batch.what),
                "idle": ms("idle while launching", waiting),
                "share": percent("idle while launching", context.share(waiting)),
                "memory": percent("memory at the peak", 100 * peak / whole, "device memory"),
            }
            if filling:
                evidence["thin"] = ms("kernels that fill less than half the device", filling)
            yield context.draft(
                batch.place,
                f"With {batch.how}, the device is idle for {{idle}} a step ({{share}}) because of launch "
                "overhead"
                + (", spends {thin} in kernels that fill less than half of it" if filling else "")
                + ", and uses {memory} of its memory. A larger batch takes less time per sample."
                + batch.whence,
                evidence,
                cause=hottest.place,
                cost_ms=waiting + filling,
                saving_ms=saving,
                change=of_twice(context, thin, batch.epoch),
                fixes=[batch.fix],
            )
            return

    def _of_parts(self, context: Context, parts: Parts) -> Iterator[Draft]:
        """Updates that add up the gradients of several batches may take the same samples in as few as memory
        holds."""
        on_host, part = not context.can("kernels"), launching_share(context)
        idle = Spent(parts.lines, launching_ms if on_host else lambda cost: part * launching_ms(cost))
        working = sum(cost.device_ms for cost in parts.lines)
        peak, whole = context.profile.facts.memory.peak_bytes, context.device.memory_bytes
        if not peak or not (whole or on_host):
            context.note("small-batch: the memory in use or the device's memory is unknown")
            return
        factor = max(
            one
            for one in range(1, parts.number + 1)
            if parts.number % one == 0 and _has_room(context, peak, one)
        )
        less = sum(less_ms(context, cost, factor) for cost in parts.lines)
        after = (
            working + idle.total / factor if on_host else max((idle.total + working) / factor, working - less)
        )
        saved = idle.total + working - after
        # On a CPU, what larger batches save is only known once it was tried.
        if factor == 1 or not (on_host or (context.share(saved) >= _GAIN_PERCENT and context.matters(saved))):
            return
        batches = "{parts} batches of {size} samples" if parts.size else "a batch in {parts} parts"
        evidence = {
            "parts": count("batches", parts.number, "per update"),
            "idle": ms("time between operators" if on_host else "idle while launching", idle.total),
            "share": percent("of it", context.share(idle.total)),
        }
        if parts.size:
            evidence["size"] = count("batch size", parts.size, "samples")
        if on_host:
            calls = sum(cost.launches for cost in parts.lines)
            evidence["calls"] = count("operators", round(calls), "per step")
            evidence["operators"] = ms("operators", working)
            meanwhile = (
                "A step runs {calls} operators for them, which take {operators}, and spends {idle} ({share}) "
                "between these."
            )
        else:
            evidence["memory"] = percent("memory at the peak", 100 * peak / whole, "device memory")
            evidence["less"] = ms("kernels that take no longer for more samples", less)
            meanwhile = (
                "Meanwhile the device is idle for {idle} a step ({share}) because of launch overhead, spends "
                "{less} in kernels that take no longer for more samples, and uses {memory} of its memory."
            )
        yield context.draft(
            parts.place,
            f"An update adds up the gradients of {batches}. {meanwhile} Fewer and larger batches, with as "
            "many samples an update, take less time.",
            evidence,
            cause=max(parts.lines, key=lambda cost: cost.step_ms).place,
            cost_ms=idle.total + working,
            saving_ms=saved,
            change=Together(
                (
                    *chain(*(in_fewer(context, cost, factor) for cost in parts.lines)),
                    JoinedBatches(factor),
                )
            ),
            least=_GAIN_PERCENT if on_host else 0.0,
            fixes=[partial(_fewer, context, parts, factor)],
        )


def _fewer(context: Context, parts: Parts, factor: int) -> Fix:
    left = parts.number // factor
    batches = "one batch" if left == 1 else f"{left} batches"
    changes = parts.changed(context, factor)
    return changes.fix(f"Accumulate {batches} instead of {parts.number}", "unsafe")


def _has_room(context: Context, peak: float, factor: int) -> bool:
    """Whether memory holds what a batch ``factor`` times as large computes: what is in use at the peak beside
    what stays between steps (on a CPU that is not known) grows as the batch does."""
    grows = peak - (context.profile.facts.memory.allocated_bytes or 0)
    return (factor - 1) * grows <= _MOST_OF_FREE * free_bytes(context)


def _trains(context: Context) -> bool:
    """Whether the steps have gradients, or an optimizer."""
    lines = context.profile.lines
    stepped = any(context.costs(site.uses) for site in context.sites("optimizer"))
    return stepped or any(cost.backward_ms > 0 or cost.total_backward_ms > 0 for cost in lines)
