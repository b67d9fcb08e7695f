"""The host waits for the device in every step, and the device is idle afterwards.

## What it does

Finds lines at which the host waits for the device (`.item()`, `.cpu()`, `print(tensor)`, `nonzero`, a
boolean mask as index, a tensor as a condition), if the device is idle elsewhere in the step because
nothing was queued. Under the profiler the host is slower, so such a wait can disappear, and so it can
beside other processes on its cores. The rule therefore also finds these lines by what they call, and times
their wait in a step without the profiler.

## Why is this slow

The host should run ahead of the device and queue work. When the host reads a value, it waits until all
queued work is done, and then the device is idle until the host has queued more. Accumulate on the
device, and read after the loop or every N steps.

## Example

```python
#> totals idle_ms=8
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    loss.backward()
    optimizer.step()
    total += loss.item()  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
print(total / len(loader))
```

## Use instead

```python
total = 0.0
for images, labels in loader:
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    total += loss.detach().double()
total = float(total)
print(total / len(loader))
```

## Example

```python
#> totals idle_ms=8
total = 0.0
for step, (images, labels) in enumerate(loader):
    loss = criterion(model(images), labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    loss.backward()
    optimizer.step()
    total += loss.item()  #> found; cost calls=1 cpu_ms=9 sync_ms=9 step_ms=0.5
    if step % 100 == 99:
        print(step, total / 100)  #> cost calls=0.01
        total = 0.0
```

## Use instead

```python
total = 0.0
for step, (images, labels) in enumerate(loader):
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    total += loss.detach().double()
    if step % 100 == 99:
        print(step, float(total) / 100)
        total = 0.0
total = float(total)
```

## Example

```python
#> totals idle_ms=8
class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / self.count

losses = AverageMeter()
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    losses.update(loss.item(), len(images))
    #^ found; cost calls=1 cpu_ms=9 sync_ms=9 step_ms=0.5; op aten::item dtypes=float shapes=[[]]
    if step % 100 == 99:
        print(step, losses.average)  #> cost calls=0.01
```

## Use instead

```python
class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / self.count

losses = AverageMeter()
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)
    losses.update(loss.detach().double(), len(images))
    if step % 100 == 99:
        print(step, float(losses.average))
```

## Example

```python
#> totals idle_ms=8
history = []
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    history.append(loss.item())  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
plot(history)
```

## Use instead

```python
history = []
for images, labels in loader:
    loss = train(images, labels)
    history.append(loss.detach().clone())
history[:] = [float(value) for value in history]
plot(history)
```

## Example

```python
#> totals idle_ms=8
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    print(f"step {step}: {loss.item():.3f}")  #> found; cost cpu_ms=9 sync_ms=9
```

## Use instead

```python
for step, (images, labels) in enumerate(loader):
    loss = train(images, labels)
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.3f}")
```

## Example

```python
#> totals idle_ms=8
right = 0
for images, labels in loader:
    scores = model(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    right += (scores.argmax(1) == labels).sum().item()
    #^ found; cost cpu_ms=9 sync_ms=9 step_ms=0.5; op aten::item dtypes=int64
print(right)
```

## Use instead

```python
right = 0
for images, labels in loader:
    scores = model(images)
    right += (scores.argmax(1) == labels).sum().detach()
right = int(right)
print(right)
```

## Example

```python
#> totals idle_ms=8
import torch

def after_backward(model):  #> cost device_ms=12 idle_ms=8 step_ms=20
    return [p.grad.norm().item() for p in model.parameters()]
    #^ found; cost calls=1 cpu_ms=9 sync_ms=9 syncs=148 step_ms=0.5; op aten::item dtypes=float shapes=[[]]
```

## Use instead

```python
import torch

def after_backward(model):
    return torch.stack(torch._foreach_norm([p.grad for p in model.parameters()])).tolist()
```

## Example

```python
#> totals idle_ms=8; flags surveyed_ms=24; steps step_ms=20
def forward(self, tokens):
    weight, choice = self.gate(tokens).max(-1)
    for index, expert in enumerate(self.experts):
        rows = torch.nonzero(choice == index)[:, 0]
        #^ found; cost cpu_ms=0.8 sync_ms=0.02 step_ms=0.3 syncs=8
        #^ site sync what=nonzero calls=8 wait_ms=0.1 direct=true
        out[rows] = expert(tokens[rows])  #> cost device_ms=11 idle_ms=8 step_ms=19
```

## Use instead

Use sizes that the host knows: run all experts on all tokens with `torch.where`, or sort the tokens by
expert with a fixed number for each.

## Example

```python
#> totals idle_ms=8
import torch

for images, labels in loader:
    scores = model(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    assert not scores.isnan().any(), "not a number"
    #^ found; cost cpu_ms=9 sync_ms=9 step_ms=0.5; site sync what=bool calls=1 wait_ms=9 direct=true
```

## Use instead

```python
import torch

for images, labels in loader:
    scores = model(images)
    torch._assert_async(~scores.isnan().any(), "not a number")
```

## Example

Python's `min` and `max` ask which of two tensors is the smaller one:

```python
#> totals idle_ms=8
import torch

best = torch.full((), float("inf"), device=device)
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    best = min(best, loss.detach().clone())
    #^ found; cost calls=1 cpu_ms=9 sync_ms=9 step_ms=0.5; site sync what=bool calls=1 wait_ms=9 direct=true
    #^ op aten::lt dtypes=float,float shapes=[[],[]]
```

## Use instead

```python
import torch

best = torch.full((), float("inf"), device=device)
for images, labels in loader:
    loss = train(images, labels)
    best = torch.minimum(best, loss.detach().clone())
```

## Fix safety

Safe if the sum or the list is only read after the loop, or the sum now and then: a sum in double precision
on the device has exactly the same bits. Unsafe for meters, whose quotients may
differ in the last bit, if a message is then only printed every N steps, and where the device checks an
`assert`: the program then ends a little later, and on a GPU nothing can catch the error. Unsafe for `min` and
`max`, too: torch's give a new tensor, not one of the two, and NaN where one of them is.

## References

- [Tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.at_once import all_but_one, read_at_once
from warpline.rulekit.deferring import read_later
from warpline.rulekit.waiting import USUAL, Wait, read_call, waits

_SEEN = (
    "The host waits {wait} of each step here for the device, and queues no work "
    "meanwhile. The device is idle for {idle} a step in total."
)
_UNSEEN = (
    "The host reads a value from the device here in each step and waits for it: {wait} "
    "under the profiler. Without the profiler%s it may lose up to {most}, because the "
    "device is idle for {idle} a step."
)
#: The host would get here sooner, and wait longer, if others did not have its cores.
_CROWDED = " and other processes, which have {crowded} of the host's time,"
_BEHIND = " Later lines read values too ({behind}) and would wait instead: change them as well."
_IN_LIBRARY = " A library's code waits there: `%s` in `%s`. What is passed to it, or a setting, may avoid it."
#: What to do about a wait, by what the host asked for.
_ADVICE = {
    "mask": "Only the device knows how many rows a mask selects: multiply by the mask, use "
    "`torch.where`, or select a fixed number of rows with `topk`.",
    "nonzero": "Only the device knows how many entries are nonzero: compute all of them with "
    "`torch.where`, or sort by group and use fixed sizes.",
    "bool": "Decide on the device (`torch.where`, or an update multiplied by zero), or check only "
    "every N steps.",
    "unique": "Only the device knows how many values there are: do this before training, or with "
    "fixed sizes.",
    "repeat_interleave": "Pass `output_size=`, so that the host does not need the sum.",
    "one_hot": "Pass `num_classes=`, so that the host does not need the largest value.",
    "numpy": "Compute this with torch on the device, or read it a step later from a pinned copy.",
    "cpu": "Compute this with torch on the device, or read it a step later from a pinned copy.",
    "linalg": "torch checks the result for errors: `torch.linalg.cholesky_ex`, `inv_ex` and `solve_ex` do "
    "not wait.",
    "tolist": "Keep the numbers on the device, or read them a step later.",
}


class SyncInStep(Rule):
    area = "waiting"
    needs = ("kernels",)

    def find(self, context: Context) -> Iterator[Draft]:
        found = waits(context)
        shadowed: set[tuple[str, int]] = set()
        for wait in sorted(found, key=lambda one: one.cost.place):
            cost = wait.cost
            if not context.matters(wait.most_ms) or "synchronize" in wait.what or cost.place in shadowed:
                continue
            if not wait.what and any(
                kernel.kind == "copy" and "HtoD" in kernel.name for kernel in cost.kernels
            ):
                continue  # waiting for a copy to the device: the data rules
            if not wait.what and any(op.name == "aten::_coalesce" for op in cost.ops):
                continue  # torch's optimizer adds up rows of sparse gradients, and asks how many there are
            place, seen = cost.place, context.matters(wait.lost_ms)
            behind = [one for one in found if _is_behind(context, wait, one)]
            shadowed.update(one.cost.place for one in behind)
            most = min(context.idle_ms(), wait.most_ms + sum(one.most_ms for one in behind))
            crowded = 0.0 if seen or not context.matters(context.crowded_ms()) else context.crowded_ms()
            unseen = _UNSEEN % (_CROWDED if crowded else "")
            yield context.draft(
                place,
                (_SEEN if seen else unseen) + _by_hand(context, wait) + (_BEHIND if behind else ""),
                {
                    "wait": ms("sync wait", wait.waited_ms),
                    **({"behind": count("other reads", len(behind), "per step")} if behind else {}),
                    **({} if seen else {"most": ms("at most lost", wait.most_ms)}),
                    **({"crowded": ms("other processes", crowded)} if crowded else {}),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(most)),
                },
                cost_ms=wait.most_ms,
                saving_ms=wait.lost_ms,
                change=RemoveSyncs((place, *(one.cost.place for one in behind))),
                fixes=[
                    partial(read_later, context, cost, [one.cost for one in behind]),
                    partial(read_at_once, context, cost),
                ],
                alternative=all_but_one(cost),
                unseen=wait.most_ms > cost.sync_ms,
            )


def _is_behind(context: Context, first: Wait, other: Wait) -> bool:
    """Whether ``other`` waits in the place of ``first`` once that does not wait: the device has no work
    between them, and neither is seen to wait."""
    here, there = first.cost, other.cost
    later = (here.file, here.function) == (there.file, there.function) and here.line < there.line
    if not later or other.calls < USUAL or "synchronize" in other.what:
        return False
    if not context.matters(other.most_ms):
        return True
    between = context.costs_within(here.file, here.line + 1, there.line)
    work = sum(kernel.device_ms for cost in between for kernel in cost.kernels if kernel.kind != "copy")
    return not context.matters(first.lost_ms) and not context.matters(other.lost_ms + work)


def _by_hand(context: Context, wait: Wait) -> str:
    """What to do where no edit can be written: by what the host waits for. In a library it is where."""
    longest = max(wait.cost.inside, key=lambda one: one.sync_ms, default=None)
    if longest is not None and longest.file != wait.cost.file and longest.sync_ms > wait.cost.sync_ms / 2:
        return _IN_LIBRARY % (longest.function, PurePath(longest.file).name)
    source = context.source(wait.cost.file)
    call = read_call(source, wait.cost.line)
    statement = source.statement(call) if call is not None else None
    told = [words for what, words in _ADVICE.items() if what in wait.what]
    decides = not isinstance(statement, cst.SimpleStatementLine)
    by_itself = any(what in wait.what for what in ("cpu", "numpy", "linalg"))
    return " " + told[0] if told and (decides or by_itself) else ""
