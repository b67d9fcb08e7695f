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

## Example

Slots of pinned memory are filled in turn, and the wait protects the one that is filled next:

```python
#> totals idle_ms=6
for step in range(1000):
    copied[step % 3].synchronize()  #> found; cost cpu_ms=12 sync_ms=12 step_ms=0.1
    slots[step % 3].copy_(rows(step))
    batch = slots[step % 3].to("cuda", non_blocking=True)
    #^ kernel "Memcpy HtoD (Pinned -> Device)" device_ms=0.5 kind=copy
    copied[step % 3].record()
    train(batch)  #> cost device_ms=14 idle_ms=6 step_ms=20
```

## Use instead

More slots, so that the copy is over long before. The wait itself has to stay.

## Fix safety

Safe: no value depends on it. There is no edit where the wait is for an event or a stream, or where the script
copies from pinned memory of its own, which it may fill again after the wait. Unsafe if the script times its
own step: without it, the script measures only the time to queue the work.

## References

- [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Rule, Source, ms, percent
from warpline.rulekit.copies import copied_to_host_unwaited, own_pinned_memory
from warpline.rulekit.waiting import waits
from warpline.syntax.source import receiver

CLOCKS = ("perf_counter", "time.time", "perf_counter_ns", "time_ns", "monotonic", "elapsed_time")
#: Why there is no edit where the wait may protect memory of the host.
_GUARDS = (
    "what follows may need what it waits for, as memory that a copy still reads or writes: wait for an event "
    "that was recorded behind that copy, as late as possible"
)


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
            source = context.source(cost.file)
            call = source.call(cost.line, "synchronize")
            if call is None:
                continue
            place, guards = cost.place, not _of_device(source, call) or own_pinned_memory(context)
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
                fixes=[_GUARDS if guards else partial(_fix, source, call)],
                unseen=wait.most_ms > cost.sync_ms,
            )


def _of_device(source: Source, call: cst.Call) -> bool:
    """Whether it waits for all of a device's work, and not for an event or another stream."""
    held = receiver(call)
    if isinstance(held, cst.Call):
        return source.is_named(held.func, "current_stream", "default_stream")
    return source.name(call.func).startswith("torch.")


def _fix(source: Source, call: cst.Call) -> Fix:
    edits = Edits(source).remove_call(call)
    # Unsafe beside a clock: what the script prints as its time would be another one.
    around = source.nodes(cst.Call, within=source.scope(call))
    clocks = any(source.is_named(one.func, *CLOCKS) for one in around)
    return edits.fix("Do not synchronize in each step", "unsafe" if clocks else "safe")
