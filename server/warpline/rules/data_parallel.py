"""`DataParallel` copies the model to all devices in every step and runs them from one process.

## What it does

Finds `torch.nn.DataParallel` on a machine with several devices, when copies, idle time and collectives
at the call of the model take a measurable part of the step.

## Why is this slow

In each step it copies the parameters to all devices, scatters the batch, runs one Python thread per
device (one at a time, because of the interpreter lock), gathers the outputs, and sums the gradients on
the first device. `DistributedDataParallel` uses one process per device. It only exchanges gradients,
and overlaps that with the backward pass. It is faster on a single machine too.

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

## Fix safety

Display: the script has to be started differently, split its data, and write files from one process
only.

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
    needs = ("kernels",)
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
                site.place,
                "DataParallel copies the model to {devices} devices in every step: idle time, copies "
                "and collectives at this call take {spent} ({share}). DistributedDataParallel, with "
                "one process per device, avoids this.",
                {
                    "devices": count("devices", context.device.count, "devices"),
                    "spent": ms("idle, copies and collectives at the call", spent),
                    "share": percent("idle, copies and collectives", context.share(spent)),
                },
                cause=hottest.place,
                cost_ms=spent,
            )
