"""Communication between devices is not overlapped with compute.

## What it does

Finds steps in which at least a tenth of the time is communication that is not overlapped with compute.

## Why is this slow

`DistributedDataParallel` exchanges gradients in buckets during the backward pass. The step waits for
the buckets that are left at the end, and for those that take longer than the backward pass.

## Example

```python
#> manifest world_size=8; totals exposed_communication_ms=20
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net())  #> found; site parallel type=DistributedDataParallel
for images, labels in loader:
    loss = model(images, labels)  #> cost device_ms=80 communication_ms=40 step_ms=80
    loss.backward()
    optimizer.step()
```

## Use instead

```python
from torch.nn.parallel import DistributedDataParallel
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

model = DistributedDataParallel(Net())
model.register_comm_hook(None, default_hooks.bf16_compress_hook)
for images, labels in loader:
    loss = model(images, labels)
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: gradients are rounded to bf16 for the exchange. These alternatives do not round: fewer exchanges
(a larger batch, gradient accumulation with `no_sync()`) or fewer calls (larger buckets).

## References

- [DDP communication hooks](https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule
from warpline.rulekit.parallel import exposed_communication, wrapper_call, wrapper_name, wrappers
from warpline.wire.run import Site
from warpline.wire.sites import Parallel, facts_of

#: Share of the step (TensorBoard plugin).
MINIMUM_PERCENT = 10.0


class ExposedCommunication(Rule):
    area = "many devices"

    def find(self, context: Context) -> Iterator[Draft]:
        exposed, lines = exposed_communication(context)
        if not lines or context.share(exposed) < MINIMUM_PERCENT:
            return
        hottest = lines[0].place
        site = next(iter(wrappers(context, "DistributedDataParallel", "FSDP")), None)
        yield context.draft(
            site.place if site is not None else hottest,
            "Communication that is not overlapped with compute takes {spent} of each step ({share}).",
            context.spent("exposed communication", exposed),
            cause=hottest,
            cost_ms=exposed,
            saving_ms=exposed / 2,  # half the bytes
            fixes=[partial(_fix, context, site)],
        )


def _fix(context: Context, site: Site | None) -> Fix:
    found = wrapper_call(context, site) if site is not None else None
    name = wrapper_name(context, site) if site is not None else ""
    if (
        site is None
        or found is None
        or not name
        or facts_of(Parallel, site).type != "DistributedDataParallel"
    ):
        raise Refused("no plain `model = DistributedDataParallel(…)` was found")
    source, call = found
    statement = source.statement(call)
    if statement is None or "register_comm_hook" in source.text:
        raise Refused("a communication hook is registered already")
    if not context.on_gpu:
        raise Refused("bf16 is only supported with NCCL")
    if not context.device.bf16:
        raise Refused("this device does not support bf16")
    edits = Edits(source)
    hooks = edits.add_import(
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
        "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks",
    )
    edits.insert_after(statement, f"{name}.register_comm_hook(None, {hooks}.bf16_compress_hook)")
    return edits.fix("All-reduce gradients in bf16", "unsafe")
