"""`torch.cuda.synchronize()` in the step makes the host wait for the device.

## What it does

Finds `torch.cuda.synchronize()` in the step, if the host waits there and the device is idle elsewhere
in the step.

## Why is this slow

After it, no work is queued, and the device is idle until the host has queued more. A training step does
not need it: reading a value waits for the device anyway.

## Example

```python
#> totals idle_ms=6
import torch

for images, labels in loader:
    train(images, labels)  #> cost device_ms=14 idle_ms=6 step_ms=20
    torch.cuda.synchronize()
    #^ found; cost cpu_ms=12 sync_ms=12 step_ms=0.1
    scheduler.step()
```

## Use instead

```python
import torch

for images, labels in loader:
    train(images, labels)
    scheduler.step()
```

## Near misses

Outside of the loop, or if the device is always busy:

```python
#> totals idle_ms=0.001
import torch

for images, labels in loader:
    train(images, labels)  #> cost device_ms=20
    torch.cuda.synchronize()  #> cost cpu_ms=12 sync_ms=12 step_ms=0.001
```

```python
import torch

for images, labels in loader:
    train(images, labels)  #> cost device_ms=20
torch.cuda.synchronize()
```

A copy to pinned memory of the host does not wait. The synchronization may be all that keeps the host from
reading the values too early:

```python
#> totals idle_ms=6
import torch

for images in loader:
    scores = model(images)  #> cost device_ms=14 idle_ms=6 step_ms=20
    answer.copy_(scores, non_blocking=True)
    #^ kernel "Memcpy DtoH (Device -> Pinned)" device_ms=0.01 kind=copy
    torch.cuda.synchronize()  #> cost cpu_ms=12 sync_ms=12 step_ms=0.1
    send(answer.numpy())
```

## Fix safety

Safe: no value depends on it. Unsafe if the script times its own step: without it, the script measures
only the time to queue the work.

## References

- [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Rule, ms, percent
from warpline.rulekit.copies import copied_to_host_unwaited
from warpline.rulekit.waiting import waits

CLOCKS = ("perf_counter", "time.time", "perf_counter_ns", "time_ns", "monotonic", "elapsed_time")


class SynchronizeInStep(Rule):
    area = "waiting"
    tags = ("unnecessary",)
    needs = ("kernels",)
    covers = ("sync-in-step",)

    def find(self, context: Context) -> Iterator[Draft]:
        if copied_to_host_unwaited(context):
            return
        for wait in waits(context):
            cost = wait.cost
            if not context.matters(wait.most_ms):
                continue
            if context.source(cost.file).call(cost.line, "synchronize") is None:
                continue
            place = cost.place
            yield context.draft(
                place,
                "The host waits {wait} of each step in a synchronization, and the device is idle "
                "afterwards, for {idle} a step.",
                {
                    "wait": ms("sync wait", wait.waited_ms),
                    "idle": ms("device idle", context.idle_ms()),
                    "share": percent("at most lost", context.share(wait.most_ms)),
                },
                cost_ms=wait.most_ms,
                saving_ms=wait.lost_ms,
                change=RemoveSyncs((place,)),
                fixes=[partial(_fix, context, cost)],
                unseen=wait.most_ms > cost.sync_ms,
            )


def _fix(context: Context, cost: LineCost) -> Fix:
    source = context.source(cost.file)
    call = source.call(cost.line, "synchronize")
    edits = Edits(source)
    edits.remove_call(call)
    # Unsafe beside a clock: what the script prints as its time would be another one.
    around = (call and source.enclosing(call, cst.FunctionDef)) or source.module
    clocks = any(source.is_named(call.func, *CLOCKS) for call in source.nodes(cst.Call, within=around))
    return edits.fix("Do not synchronize in each step", "unsafe" if clocks else "safe")
