"""The step stops until the device has done everything, because the script says so.

## What it does

Finds `torch.cuda.synchronize()` in the step, by the time that the host waits there while the device is
idle elsewhere in the step.

## Why is this slow

After it the device has nothing queued, and waits until the host has queued the next work. Nothing in
a training step needs it: reading a value waits by itself.

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

Outside of the loop, or where the device is busy all the time:

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

## Fix safety

Safe: no value depends on it. Unsafe where the script times its own step: without it, the time printed
is that of queueing.

## References

- [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.model.profile import LineCost
from warpline.model.report import Applicability, Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.source import Source
from warpline.rulekit.waiting import waits

CLOCKS = ("perf_counter", "time.time", "perf_counter_ns", "time_ns", "monotonic", "elapsed_time")


class SynchronizeInStep(Rule):
    area = "waiting"
    tags = ("unnecessary",)
    needs_gpu = True
    covers = ("sync-in-step",)

    def find(self, context: Context) -> Iterator[Draft]:
        for wait in waits(context):
            cost = wait.cost
            source = context.source(cost.file) if context.matters(wait.most_ms) else None
            if source is None or source.call(cost.line, "synchronize") is None:
                continue
            place = (cost.file, cost.line)
            yield context.draft(
                place,
                place,
                "The host waits {wait} of each step until the device has done everything, then the device "
                "waits for the host: it is idle {idle} a step.",
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
    call = source.call(cost.line, "synchronize") if source is not None else None
    statement = source.statement(call) if source is not None and call is not None else None
    if source is None or statement is None or not isinstance(source.parent(call or statement), cst.Expr):
        raise Refused("the call is not a statement of its own")
    edits = Edits(source)
    edits.remove(statement)
    return edits.fix("Do not wait for the device in each step", _safety(source, statement))


def _safety(source: Source, statement: cst.CSTNode) -> Applicability:
    """Unsafe beside a clock: what the script prints as its time would be another one."""
    around = source.enclosing(statement, cst.FunctionDef) or source.module
    clocks = any(source.is_named(call.func, *CLOCKS) for call in source.nodes(cst.Call, within=around))
    return "unsafe" if clocks else "safe"
