"""The host waits for the device in every step, and the device then waits for the host.

## What it does

Finds lines at which the host waits for the device (`.item()`, `.cpu()`, `print(tensor)`, `nonzero`, an
index by a mask, a tensor as a condition), while the device is idle elsewhere in the step because nothing
was queued. A profiler slows the host, and what it waits for is then done before it asks. Such lines are
found by what they call, and their wait is timed in a step that runs without the profiler.

## Why is this slow

The host should run ahead of the device and queue work. A value read on the host makes it wait until
all queued work is done; then the device has nothing to do until the host has queued more. Add up on
the device, and read when the loop is over or every so many steps.

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
    history.append(loss.detach())
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
    right += (scores.argmax(1) == labels).sum().item()  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.5
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

Sizes that the host knows: all experts on all tokens with `torch.where`, or tokens sorted by expert with a
fixed number for each.

## Near misses

The wait is short in a step without the profiler, too:

```python
#> totals idle_ms=8; flags surveyed_ms=20.1; steps step_ms=20
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=12 idle_ms=8 step_ms=20
    if not torch.isfinite(loss):
        #^ cost cpu_ms=0.1 sync_ms=0.02 step_ms=0.1 syncs=1
        #^ site sync what=bool calls=1 wait_ms=0.02 direct=true
        break
```

The device is never idle: the wait costs nothing.

```python
#> totals idle_ms=0.001
total = 0.0
for images, labels in loader:
    loss = train(images, labels)  #> cost device_ms=20
    total += loss.item()  #> cost cpu_ms=19 sync_ms=19 step_ms=0.001
```

Read every hundredth step only:

```python
#> totals idle_ms=8
for step, images in enumerate(loader):
    loss = train(images)  #> cost device_ms=12 idle_ms=8 step_ms=20
    if step % 100 == 0:
        print(loss.item())
```

## Fix safety

Safe where the sum or the list is only read after the loop: a sum in double precision on the device
has the very same bits. Unsafe where a message is printed every so many steps only.

## References

- [Tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.rulekit import Context, Draft, Rule, ms, percent
from warpline.rulekit.deferring import read_later
from warpline.rulekit.waiting import Wait, read_call, waits

_SEEN = (
    "The host waits {wait} of each step for the device here, and queues nothing meanwhile: the device is "
    "then idle, {idle} a step in all."
)
_UNSEEN = (
    "The host needs a value of the device here in each step and waits for it. While it was looked at, which "
    "slows it, it waited {wait}; it may lose up to {most}, as the device is idle {idle} a step."
)
#: What to do about a wait, by what the host asked for.
_ADVICE = {
    "mask": "How many rows a mask chooses is known on the device only: multiply by the mask, use "
    "`torch.where`, or choose a fixed number of rows with `topk`.",
    "nonzero": "How many entries are not zero is known on the device only: work on all of them with "
    "`torch.where`, or sort by group and use sizes that are fixed.",
    "bool": "Decide on the device (`torch.where`, or an update that is multiplied by zero), or look only "
    "every so many steps.",
    "unique": "How many values there are is known on the device only: do this before training, or with "
    "sizes that are fixed.",
    "repeat_interleave": "Pass `output_size=`, and the host need not know the sum.",
    "one_hot": "Pass `num_classes=`, and the host need not know the largest.",
    "numpy": "Compute this with torch on the device, or read it a step later from a pinned copy.",
    "cpu": "Compute this with torch on the device, or read it a step later from a pinned copy.",
    "tolist": "Keep the numbers on the device, or read them a step later.",
}


class SyncInStep(Rule):
    area = "waiting"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        for wait in waits(context):
            cost = wait.cost
            if not context.matters(wait.most_ms) or "synchronize" in wait.what:
                continue
            if not wait.what and any(
                kernel.kind == "copy" and "HtoD" in kernel.name for kernel in cost.kernels
            ):
                continue  # waiting for a copy to the device: the data rules
            place, seen = (cost.file, cost.line), context.matters(wait.lost_ms)
            yield context.draft(
                place,
                place,
                (_SEEN if seen else _UNSEEN) + _by_hand(context, wait),
                {
                    "wait": ms("sync wait", wait.waited_ms),
                    **({} if seen else {"most": ms("at most lost", wait.most_ms)}),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(wait.most_ms)),
                },
                cost_ms=wait.most_ms,
                saving_ms=wait.lost_ms,
                change=RemoveSyncs((place,)),
                fixes=[partial(read_later, context, cost)],
                unseen=wait.most_ms > cost.sync_ms,
            )


def _by_hand(context: Context, wait: Wait) -> str:
    """What to do where no edit can be written: by what the host waits for."""
    source = context.source(wait.cost.file)
    call = read_call(source, wait.cost.line) if source is not None else None
    statement = source.statement(call) if source is not None and call is not None else None
    told = [words for what, words in _ADVICE.items() if what in wait.what]
    decides = not isinstance(statement, cst.SimpleStatementLine)
    return " " + told[0] if told and (decides or "cpu" in wait.what or "numpy" in wait.what) else ""
