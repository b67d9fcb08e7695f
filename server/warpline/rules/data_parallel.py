"""`DataParallel` drives several devices from one thread and copies the model to them in every step.

## What it does

Finds `torch.nn.DataParallel` on a machine with several devices, by what the line that calls the model
costs: copies, idle time of the devices, and collectives.

## Why is this slow

Each step it copies the parameters to all devices, scatters the batch, runs one Python thread per
device (one at a time, for the interpreter lock), gathers the outputs and adds the gradients on the
first. `DistributedDataParallel` has one process a device and overlaps the only communication, that of
gradients, with the backward pass. It is faster also on a single machine.

## Example

```python
#> device count=4
import torch

model = torch.nn.DataParallel(Net())  #> found; site parallel type=DataParallel
for images, labels in loader:
    scores = model(images)
    #^ cost device_ms=20 idle_ms=30 communication_ms=8 copy_ms=2 step_ms=50; use parallel
    criterion(scores, labels).backward()
```

## Use instead

One process per device, started by `torchrun --nproc-per-node 4 train.py`: in each,
`torch.distributed.init_process_group("nccl")`, the model on its own device inside
`torch.nn.parallel.DistributedDataParallel`, and a `DistributedSampler` for the loader.

## Near misses

A single device: `DataParallel` then only calls the model.

```python
#> device count=1
import torch

model = torch.nn.DataParallel(Net())  #> site parallel type=DataParallel
for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 idle_ms=30 step_ms=50; use parallel
```

The other kind:

```python
#> device count=4
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net())  #> site parallel type=DistributedDataParallel
for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 idle_ms=30 step_ms=50; use parallel
```

## Fix safety

Display: how the script is started, how it splits the data and which process writes files change with
it.

## References

- [DistributedDataParallel or DataParallel](https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.parallel import calls_of, wrappers


class DataParallel(Rule):
    area = "many devices"
    tags = ("deprecated",)
    needs_gpu = True
    covers = ("exposed-communication",)

    def find(self, context: Context) -> Iterator[Draft]:
        if context.device.count < 2:
            return
        for site in wrappers(context, "DataParallel"):
            lines = calls_of(context, site)
            spent = sum(cost.idle_ms + cost.copy_ms + cost.communication_ms for cost in lines)
            if not context.matters(spent):
                continue
            hottest = max(lines, key=lambda cost: cost.idle_ms + cost.copy_ms + cost.communication_ms)
            yield context.draft(
                (site.file, site.line),
                (hottest.file, hottest.line),
                "One thread drives {devices} devices and copies the model to them in every step: idle time, "
                "copies and collectives at the call take {spent} ({share}). DistributedDataParallel has one "
                "process a device.",
                {
                    "devices": count("devices", context.device.count, "devices"),
                    "spent": ms("idle, copies and collectives at the call", spent),
                    "share": percent("idle, copies and collectives", context.share(spent)),
                },
                cost_ms=spent,
            )
