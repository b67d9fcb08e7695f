"""`DistributedDataParallel` searches the graph for unused parameters in every step.

## What it does

Finds `find_unused_parameters=True` if the device is idle at the call of the model.

## Why is this slow

After each forward pass, the host searches the whole autograd graph for unused parameters, and the
devices exchange the result. In most models every parameter is used, and the search finds nothing.

## Example

```python
#> manifest world_size=2
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net(), find_unused_parameters=True)
#^ found; site parallel type=DistributedDataParallel find_unused_parameters=true
for images, labels in loader:
    scores = model(images)  #> cost device_ms=20 idle_ms=6 cpu_ms=14 step_ms=26; use parallel
    criterion(scores, labels).backward()
```

## Use instead

```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net(), find_unused_parameters=False)
for images, labels in loader:
    scores = model(images)
    criterion(scores, labels).backward()
```

## Fix safety

Unsafe: if a step does not use some parameter, `DistributedDataParallel` then fails with an error that
says so.

## References

- [DistributedDataParallel](https://docs.pytorch.org/docs/stable/notes/ddp.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.origins import argument_origin
from warpline.rulekit.parallel import calls_of, wrapper_call, wrappers
from warpline.wire.run import Site
from warpline.wire.sites import Parallel, facts_of


class UnusedParameterSearch(Rule):
    area = "many devices"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in wrappers(context, "DistributedDataParallel"):
            if facts_of(Parallel, site).find_unused_parameters is not True:
                continue
            lines = calls_of(context, site)
            idle = sum(cost.idle_ms for cost in lines)
            if not context.matters(idle):
                continue
            hottest = max(lines, key=lambda cost: cost.idle_ms)
            yield context.draft(
                site.place,
                "DistributedDataParallel searches the graph for unused parameters in every step, and "
                "the device is idle for {idle} at this line ({share}).",
                {
                    "idle": ms("device idle at the call", idle),
                    "share": percent("device idle", context.share(idle)),
                },
                cause=hottest.place,
                cost_ms=idle,
                saving_ms=0.0,  # how much of the idle time is the search is not measured
                fixes=[partial(_fix, context, site)],
            )


def _fix(context: Context, site: Site) -> Fix:
    found = wrapper_call(context, site)
    value = argument_origin(context, *found, "find_unused_parameters") if found is not None else None
    if value is None:
        raise Refused("the call that passes `find_unused_parameters` was not found on that line")
    if not value.editable:
        raise Refused(f"it comes from {value.words}")
    title = "Do not search for unused parameters (find_unused_parameters=False)"
    return Edits(value.source).replace(value.node, "False").fix(title, "unsafe")
