"""A tensor is created on the host and then copied to the device.

## What it does

Finds lines that create a tensor on the host and copy it to the device in each step, by their measured
time.

## Why is this slow

The host fills the memory, then waits for the copy. Created on the device, the same tensor is one kernel
that the host only queues.

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

## Example

```python
import torch

def noise_like(images, device):
    noise = torch.randn(images.size())
    #^ found; cost cpu_ms=12 idle_ms=11 step_ms=12
    #^ site tensor as=noise op=randn device=cpu to=cuda bytes=67108864 calls=1
    return noise.to(device)  #> cost device_ms=3 copy_ms=3 step_ms=3; use noise

for images in loader:
    train(images, noise_like(images, "cuda"))  #> cost device_ms=30
```

## Use instead

```python
import torch

def noise_like(images, device):
    noise = torch.randn(images.size(), device=device)
    return noise.to(device)

for images in loader:
    train(images, noise_like(images, "cuda"))
```

## Example

Moved under a condition, which then says where it is created:

```python
import torch

def sample_noise(images, use_gpu):
    noise = torch.randn(images.size())
    #^ found; cost cpu_ms=12 idle_ms=11 step_ms=12
    #^ site tensor as=noise op=randn device=cpu to=cuda bytes=67108864 calls=1
    if use_gpu:
        noise = noise.cuda()  #> cost device_ms=3 copy_ms=3 step_ms=3; use noise
    return noise + images

for images in loader:
    train(images, sample_noise(images, True))  #> cost device_ms=30
```

## Use instead

```python
import torch

def sample_noise(images, use_gpu):
    noise = torch.randn(images.size(), device="cuda" if use_gpu else "cpu")
    if use_gpu:
        noise = noise.cuda()
    return noise + images

for images in loader:
    train(images, sample_noise(images, True))
```

## Example

NumPy creates it, in the function that copies it:

```python
import torch

def hide(rng, shape, device):
    hidden = rng.random(shape) < 0.3  #> cost cpu_ms=30 idle_ms=30
    return torch.from_numpy(hidden).to(device)
    #^ found; cost device_ms=1 copy_ms=1
    #^ site tensor op=from_numpy device=cpu to=cuda bytes=8388608 calls=1

for images in loader:
    train(images, hide(rng, images.shape, "cuda"))  #> cost device_ms=30
```

## Use instead

`torch.rand(shape, device=device) < 0.3`.

## Example

```python
import torch

class Config:
    noise_device = "cpu"  #> found

def noise(cfg, shape):
    z = torch.randn(shape, device=cfg.noise_device)
    #^ cost cpu_ms=12 idle_ms=12; site tensor op=randn device=cpu to=cuda bytes=64000000 calls=1; use tensor
    return z.to(cfg.device)

for images in loader:
    train(images, noise(Config, images.shape))  #> cost device_ms=30
```

## Use instead

The device's name there.

## Example

Filled where it is created:

```python
import torch

def shocks(steps, paths, like):
    return (torch.empty(2, steps, paths).normal_() * 0.5).to(like.device, torch.bfloat16)
    #^ found; cost cpu_ms=12 idle_ms=11 step_ms=12
    #^ site tensor op=empty device=cpu to=cuda:0 bytes=67108864 calls=1

for images in loader:
    train(images, shocks(8, 1024, images))  #> cost device_ms=30
```

## Use instead

```python
import torch

def shocks(steps, paths, like):
    return (torch.empty(2, steps, paths, device=like.device).normal_() * 0.5).to(torch.bfloat16)

for images in loader:
    train(images, shocks(8, 1024, images))
```

## Fix safety

Safe for constants and ranges. Unsafe for random tensors: their values then come from the device's
generator. A `torch.Generator` that they draw from is made on the device, too; no edit is offered where
anything else draws from it. What else is done to the tensor before the copy has to be arithmetic with
numbers, methods without other tensors, or nothing.

## References

- [Tuning guide: create tensors on the device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Origin, Refused, Rule, size
from warpline.rulekit.copies import move_calls, moved_to
from warpline.rulekit.host_made import made_on_device, making_ms
from warpline.rulekit.made_apart import made_moved
from warpline.rulekit.made_here import check_arguments, made_here, of_device
from warpline.rulekit.origins import argument_origin
from warpline.rulekit.saving import Spent
from warpline.rulekit.terms import names_in
from warpline.syntax.source import Source, is_method, receiver
from warpline.wire.run import Site
from warpline.wire.sites import HostTensor, facts_of

CONSTANT = ("zeros", "ones", "full", "arange", "linspace", "eye", "empty", "tensor")
RANDOM = ("rand", "randn", "randint", "randperm", "normal")
#: Tensors of these hold an array that the script has already.
OF_DATA = ("asarray", "from_numpy", "frombuffer")
#: Functions and generator methods of NumPy's that fill an array of a given size.
FILLS = (
    "random", "normal", "standard_normal", "uniform", "integers", "binomial", "poisson", "exponential",
    "permutation", "choice", "rand", "randn", "randint", "random_sample", "zeros", "ones", "full", "arange",
    "linspace", "eye", "tri", "tril", "triu", "indices", "meshgrid", "logspace",
)  # fmt: skip


_BY_HAND = "says where it is created: name the device there that it is moved to"


class TensorMadeOnHost(Rule):
    area = "data"
    needs = ("kernels",)
    covers = ("pageable-host-copy", "blocking-host-copy")

    def find(self, context: Context) -> Iterator[Draft]:
        # A batch that the loader puts together is no tensor of the user's making.
        fetched = {place for site in context.sites("loader") for place in site.uses}
        for site in context.sites("tensor"):
            if site.place in fetched:
                continue
            tensor = facts_of(HostTensor, site)
            if (tensor.device or "cpu") != "cpu" or "cuda" not in (tensor.to or ""):
                continue
            makers = _makers(context, site)
            if tensor.op in OF_DATA and not makers:
                continue  # data that the script has: the rules about copies
            costs = context.costs([site.place, *makers, *site.uses])
            own = Spent(costs, making_ms)
            spent = own.total
            if not context.matters(spent):
                continue
            named = _host_named_at(context, site)
            yield context.draft(
                site.place if named is None else named.place,
                "A tensor of {bytes} is created on the host and copied to the device, which takes "
                "{spent} of each step ({share}).",
                {
                    "bytes": size("tensor", float(tensor.bytes or 0)),
                    **context.spent("making and moving it", spent),
                },
                cause=own.hottest.place,
                cost_ms=spent,
                change=Together(made_on_device(own)),
                fixes=[partial(_fix, context, site) if named is None else f"{named.words} {_BY_HAND}"],
            )


def _host_named_at(context: Context, site: Site) -> Origin | None:
    """Where the ``device=`` that it is created with says "cpu": in a config, or a constant."""
    source = context.source(site.file)
    for call in _made(source, site):
        found = argument_origin(context, source, call, "device")
        if found is not None and found.editable and found.source.literal(found.node) == "cpu":
            return found
    return None


def _made(source: Source, site: Site) -> list[cst.Call]:
    """The calls on the site's line that create such a tensor."""
    return [
        call
        for call in source.calls(site.line)
        if source.name(call.func).startswith("torch.")
        and source.name(call.func).rpartition(".")[2] == facts_of(HostTensor, site).op
    ]


def _makers(context: Context, site: Site) -> list[tuple[str, int]]:
    """Lines of the same function that fill, with NumPy, what the site makes a tensor of."""
    source = context.source(site.file)
    statement = source.statement_at(site.line)
    if statement is None:
        return []
    names = names_in(statement)
    lines = [
        (site.file, source.line(one))
        for one in source.nodes(cst.Assign, within=source.scope(statement))
        if any(names & names_in(target) for target in one.targets) and source.line(one) <= site.line
        if _fills(source, one.value)
    ]
    return lines or ([site.place] if _fills(source, statement) else [])


def _fills(source: Source, node: cst.CSTNode) -> bool:
    """Whether an array is made there of nothing but a size: no data that the script has."""
    return any(
        is_method(call, *FILLS) and not source.name(call.func).startswith("torch.")
        for call in source.nodes(cst.Call, within=node)
    )


def _fix(context: Context, site: Site) -> Fix:
    source = context.source(site.file)
    for move in move_calls(source, site.line):
        given = receiver(move) or move
        made = made_here(context, source, given)
        factory = source.name(made.call.func).rpartition(".")[2] if made is not None else ""
        if made is None or factory not in CONSTANT + RANDOM:
            continue
        check_arguments(source, made.call)
        wanted = moved_to(source, move)
        edits = Edits(source)
        of_device(context, edits, made.call, wanted["device"])
        # A type goes with it where nothing is computed in the other type before.
        stays = made.call is not given and "dtype" in wanted
        arguments = "".join(
            f", {name}={code}" for name, code in wanted.items() if name == "device" or not stays
        )
        inner = source.code(made.call)[:-1].rstrip().removesuffix(",") + arguments + ")"
        before, after = source.span(move)[0], source.span(made.call)[1]
        above = move.func.attr if isinstance(move.func, cst.Attribute) else move
        end = source.slice(after, source.span(above)[0]).rstrip().removesuffix(".").rstrip()
        code = source.slice(before, source.span(made.call)[0]) + inner + end
        if code.count(".pin_memory()") != len(made.pinned):
            raise Refused("its memory is pinned: leave that out, and pass `device=`")
        code = code.replace(".pin_memory()", "")
        edits.replace(move, code + (f".to({wanted['dtype']})" if stays else ""))
        safe = factory in CONSTANT and made.exact
        return edits.fix("Make the tensor on the device", "safe" if safe else "unsafe")
    if facts_of(HostTensor, site).op in OF_DATA:
        raise Refused("NumPy creates it on the host: use torch's function of the same name with `device=`")
    moves = [move for file, line in site.uses if file == site.file for move in move_calls(source, line)]
    edits, exact = made_moved(context, source, _made(source, site), moves)
    constant = facts_of(HostTensor, site).op in CONSTANT and not site.uses[1:]
    return edits.fix("Make the tensor on the device", "safe" if constant and exact else "unsafe")
