"""A tensor is made in host memory only to be copied to the device.

## What it does

Finds tensors that are filled on the host and then moved, each step, by the measured time of that line.

## Why is this slow

The host fills memory, then waits for a copy of it. On the device the same tensor is one kernel that
the host only queues.

## Example

```python
import torch

for images in loader:
    mask = torch.zeros(4096, 4096).to(device)
    #^ found; cost cpu_ms=12 idle_ms=11 device_ms=3 copy_ms=3 step_ms=14
    #^ site tensor op=zeros device=cpu to=cuda bytes=67108864 calls=1
    train(images, mask)  #> cost device_ms=30
```

## Use instead

```python
import torch

for images in loader:
    mask = torch.zeros(4096, 4096, device=device)
    train(images, mask)
```

## Near misses

Made on the device:

```python
import torch

for images in loader:
    mask = torch.zeros(4096, 4096, device=device)  #> cost device_ms=3
    train(images, mask)  #> cost device_ms=30
```

A batch that the loader put together:

```python
loader = torch.utils.data.DataLoader(dataset, batch_size=64)  #> site loader num_workers=0
for images, labels in loader:
    #^ cost cpu_ms=12 idle_ms=11 loader_ms=11 step_ms=12; use loader
    #^ site tensor op=tensor device=cpu to=cuda bytes=512 calls=1
    labels = labels.to(device)  #> cost cpu_ms=0.1
    train(images, labels)  #> cost device_ms=30
```

On the host, but quick:

```python
import torch

for images in loader:
    scale = torch.ones(1).to(device)
    #^ cost cpu_ms=0.02; site tensor op=ones device=cpu to=cuda bytes=4 calls=1
    train(images, scale)  #> cost device_ms=30
```

## Fix safety

Safe for constants and ranges; unsafe for random tensors, whose values come from the device's own
generator then.

## References

- [Tuning guide: create tensors on the device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Scale
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent, size
from warpline.rulekit.copies import move_calls
from warpline.rulekit.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import HostTensor, facts_of

CONSTANT = ("zeros", "ones", "full", "arange", "linspace", "eye", "empty", "tensor")
RANDOM = ("rand", "randn", "randint", "randperm", "normal")


class TensorMadeOnHost(Rule):
    area = "data"
    needs_gpu = True
    covers = ("pageable-host-copy", "blocking-host-copy")

    def find(self, context: Context) -> Iterator[Draft]:
        # A batch that the loader puts together is no tensor of the user's making.
        fetched = {place for site in context.sites("loader") for place in site.uses}
        for site in context.sites("tensor"):
            if (site.file, site.line) in fetched:
                continue
            tensor = facts_of(HostTensor, site)
            if (tensor.device or "cpu") != "cpu" or "cuda" not in (tensor.to or ""):
                continue
            costs = context.costs([(site.file, site.line), *site.uses])
            spent = sum(cost.step_ms for cost in costs)
            if not context.matters(spent):
                continue
            hottest = max(costs, key=lambda cost: cost.step_ms)
            yield context.draft(
                (site.file, site.line),
                (hottest.file, hottest.line),
                "A tensor of {bytes} is filled on the host and copied to the device: {spent} of each step "
                "({share}).",
                {
                    "bytes": size("tensor", float(tensor.bytes or 0)),
                    "spent": ms("making and moving it", spent),
                    "share": percent("making and moving it", context.share(spent)),
                },
                cost_ms=spent,
                change=Scale(tuple((cost.file, cost.line) for cost in costs), device=0.1, host=0.1),
                fixes=[partial(_fix, context, site)],
            )


def _fix(context: Context, site: Site) -> Fix:
    source = context.source(site.file)
    if source is None:
        raise Refused("the file cannot be read")
    for move in move_calls(source, site.line):
        made = move.func.value if isinstance(move.func, cst.Attribute) else None
        if not isinstance(made, cst.Call) or not source.name(made.func).startswith("torch."):
            continue
        factory = source.name(made.func).rpartition(".")[2]
        if factory not in CONSTANT + RANDOM:
            continue
        edits = Edits(source)
        present = source.argument(made, "device")
        if present is not None:
            raise Refused("it already names a device")
        arguments = "".join(f", {name}={code}" for name, code in _moved_to(source, move).items())
        inner = source.code(made)
        edits.replace(move, inner[:-1].rstrip().removesuffix(",") + arguments + ")")
        safe = factory in CONSTANT
        return edits.fix("Make the tensor on the device", "safe" if safe else "unsafe")
    raise Refused("it is made in one statement and moved in another: pass `device=` where it is made")


def _moved_to(source: Source, move: cst.Call) -> dict[str, str]:
    """The keywords that do what ``.to(…)`` or ``.cuda(…)`` did."""
    found: dict[str, str] = {}
    is_cuda = isinstance(move.func, cst.Attribute) and move.func.attr.value == "cuda"
    for arg in move.args:
        code = source.code(arg.value)
        name = arg.keyword.value if arg.keyword is not None else ""
        if name in ("non_blocking", "copy") or (not name and source.literal(arg.value) in (True, False)):
            continue
        if name not in ("", "device", "dtype") or arg.star:
            raise Refused(f"`{code}` in the move could not be understood")
        is_type = name == "dtype" or source.name(arg.value).startswith("torch.")
        found["dtype" if is_type else "device"] = code
    if is_cuda and "device" not in found:
        found["device"] = '"cuda"'
    value = found.get("device", "")
    if not value or not _names_device(value):
        raise Refused("what it is moved to is not plainly a device")
    return dict(sorted(found.items()))


def _names_device(code: str) -> bool:
    """``device``, ``self.device``, ``x.device``, ``"cuda:0"``, ``0``; not ``other_tensor``."""
    return "device" in code or "cuda" in code or code.isdigit()
