"""A tensor is computed again in each step from nothing that changes.

## What it does

Finds operators with the same result in each step: position encodings, masks, grids or windows that depend
only on sizes and on a module's buffers, and what two steps in a row compute of the same numbers and of the
same tensors, to which nothing writes (a graph's normalised adjacency, a factorised covariance). It follows
how the tensors of one step depend on each other. It reports nothing if the sizes differ between the captured
steps, if a number looks like a position or a time, or is drawn at random to choose an entry, if both steps
are the same as a whole (a benchmark), or if it takes almost no time; what functions of one file take is added
up. It also finds what NumPy or plain Python computes for a tensor of floats that holds the same in both
steps, and a tensor that is filled with one number only for `torch.where`.

## Why is this slow

The device fills the tensor again in each step (or in each layer), and the host queues those kernels. A tensor
that is made once is only read.

## Example

```python
import torch

def encoding(length, width, device):
    position = torch.arange(length, device=device).float()[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=device) * (-9.2 / width))
    return torch.cat([torch.sin(position * rate), torch.cos(position * rate)], dim=1)
    #^ cost step_ms=4 device_ms=4 forward_ms=4
    #^ node aten.arange.default function=encoding args=[4096] shape=[4096]
    #^ node aten.sin.default function=encoding args=[%0] shape=[4096,512]
    #^ node aten.cos.default function=encoding args=[%0] shape=[4096,512]
    #^ node aten.cat.default function=encoding args=[[%1,%2]] shape=[4096,1024]

for tokens in loader:
    x = embed(tokens) + encoding(4096, 1024, "cuda")
    #^ found; cost step_ms=6 device_ms=6
    #^ node aten.add.Tensor args=[%9,%3] shape=[32,4096,1024]
    train(x)  #> cost device_ms=30
```

## Use instead

Make it once before the loop, or in the module's `__init__` with `register_buffer`, and use that.

## Example

```python
import torch

class Layer(torch.nn.Module):
    def forward(self, scores):
        length = scores.shape[-1]
        future = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        #^ found; cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.ones.default function=Layer.forward args=[[8192,8192]] shape=[8192,8192] dtype=bool
        #^ node aten.triu.default function=Layer.forward args=[%0,1] shape=[8192,8192] dtype=bool
        return scores.masked_fill(future, float("-inf"))
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.masked_fill.Scalar function=Layer.forward args=[%9,%1] shape=[8,8192,8192]
```

## Use instead

The same: a buffer of the longest length; each call takes a slice of it.

## Example

What a module computes of its own buffers alone is told in the module, not at its call:

```python
import torch

class Walks(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)

    def forward(self):
        walk = self.weights.softmax(1)
        #^ cost step_ms=1 device_ms=1 forward_ms=1; tensor %9 shape=[8192,8192] buffer=true
        #^ node aten._softmax.default function=Walks.forward args=[%9,1,False] shape=[8192,8192]
        return walk @ walk
        #^ found; cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.mm.default function=Walks.forward args=[%0,%0] shape=[8192,8192]

for x in batches:
    hops = supports() @ x
    #^ cost step_ms=9 device_ms=9 forward_ms=9; node aten.mm.default args=[%1,%8] shape=[8192,512]
    train(hops)  #> cost device_ms=30
```

## Use instead

The result as the buffer.

## Example

A function of the module's own buffers:

```python
import torch

def walks(weights, reach):
    return (weights / reach).softmax(1)
    #^ cost step_ms=4 device_ms=4 forward_ms=4; tensor %9 shape=[8192,8192] buffer=true
    #^ node aten.div.Tensor function=walks args=[%9,0.5] shape=[8192,8192]
    #^ node aten._softmax.default function=walks args=[%0,1,False] shape=[8192,8192]

class Spread(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)
        self.reach = 0.5

    def forward(self, x):
        hops = walks(self.weights, self.reach)  #> found; cost step_ms=0.1
        return hops @ x
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.mm.default function=Spread.forward args=[%1,%8] shape=[8192,512]
```

## Use instead

```python
import torch

def walks(weights, reach):
    return (weights / reach).softmax(1)

class Spread(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", weights)
        self.reach = 0.5
        self.register_buffer("hops", walks(self.weights, self.reach), persistent=False)

    def forward(self, x):
        hops = self.hops
        return hops @ x
```

## Example

A function of numbers that several lines call:

```python
import torch
from torch import nn

def kernel(size, reach):
    #^ found
    place = torch.arange(size, device="cuda") / (size - 1)
    #^ cost step_ms=1 device_ms=1 forward_ms=1 function=kernel
    #^ node aten.arange.default function=kernel args=[8192] shape=[8192]
    return torch.exp(-torch.cdist(place, place) / reach)
    #^ cost step_ms=8 device_ms=8 forward_ms=8 function=kernel
    #^ node aten._cdist_forward.default function=kernel args=[%0,%0] shape=[8192,8192]
    #^ node aten.exp.default function=kernel args=[%1] shape=[8192,8192]

class Wide(nn.Module):
    def forward(self, x):
        return kernel(self.size, 1.5) @ x
        #^ cost step_ms=9 device_ms=9; node aten.mm.default function=Wide.forward args=[%2,%9] shape=[8192,64]

class Near(nn.Module):
    def forward(self, x):
        return x @ kernel(self.size, 0.5)
        #^ cost step_ms=9 device_ms=9; node aten.mm.default function=Near.forward args=[%9,%2] shape=[64,8192]
```

## Use instead

```python
import torch
from torch import nn
from functools import cache

@cache
def kernel(size, reach):
    place = torch.arange(size, device="cuda") / (size - 1)
    return torch.exp(-torch.cdist(place, place) / reach)

class Wide(nn.Module):
    def forward(self, x):
        return kernel(self.size, 1.5) @ x

class Near(nn.Module):
    def forward(self, x):
        return x @ kernel(self.size, 0.5)
```

## Example

NumPy computes it, and torch only gets the result:

```python
import numpy as np
import torch

for x in batches:
    apart = np.abs(np.arange(2048)[:, None] - np.arange(2048))  #> cost step_ms=8 idle_ms=8 calls=1
    near = np.exp(-apart / 300).astype(np.float32)  #> found; cost step_ms=20 idle_ms=20 calls=1
    loss = (attend(x) * torch.from_numpy(near)).mean()
    #^ cost device_ms=9; tensor %8 shape=[8,2048,2048]; tensor %9 shape=[2048,2048] remade=true
    #^ node aten.mul.Tensor args=[%8,%9] shape=[8,2048,2048]; node aten.mean.default args=[%0] shape=[]
    train(loss)  #> cost device_ms=30
```

## Use instead

The tensor, made before the loop.

## Example

A number that `torch.where` could take as it is:

```python
import torch

class Attention(torch.nn.Module):
    def forward(self, h, edges):
        scores = self.left(h) + self.right(h).T
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.add.Tensor function=Attention.forward args=[%9,%8] shape=[8192,8192]
        none = -9e15 * torch.ones_like(scores)
        #^ found; cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.ones_like.default function=Attention.forward args=[%0] shape=[8192,8192]
        #^ node aten.mul.Tensor function=Attention.forward args=[%1,-9e15] shape=[8192,8192]
        scores = torch.where(edges > 0, scores, none)
        #^ cost step_ms=9 device_ms=9 forward_ms=9
        #^ node aten.gt.Scalar function=Attention.forward args=[%7,0] shape=[8192,8192] dtype=bool
        #^ node aten.where.self function=Attention.forward args=[%3,%0,%2] shape=[8192,8192]
        return scores.softmax(1)
        #^ cost step_ms=9 device_ms=9 forward_ms=9
```

## Use instead

```python
import torch

class Attention(torch.nn.Module):
    def forward(self, h, edges):
        scores = self.left(h) + self.right(h).T
        scores = torch.where(edges > 0, scores, -9e15)
        return scores.softmax(1)
```

## Fix safety

Unsafe: a buffer is computed where the module is made, on the host, and stays as it is; a property becomes a
`cached_property`, which stays on its device. An object that is no module keeps an attribute. The edit is
offered where a line calls a function or a method, or a property computes, of nothing but the object's own
buffers, attributes and settings, which nothing else changes or loads, and where several lines call a function
of numbers, which gets a cache; else it is left to you. A tensor that is kept must not be changed in place,
must be on the model's device, and takes memory. If it depends on a setting that the script changes later,
make it again then. The number for `torch.where` is safe: nothing else may read the tensor, and the other
argument must have its type and the result's shape.

## References

- [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from warpline.model.change import Scale, Together
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.chosen_numbers import chosen_numbers
from warpline.rulekit.constants import as_buffer, made_at
from warpline.rulekit.drawn import without_drawn
from warpline.rulekit.graph import Graph, Node, graph_around
from warpline.rulekit.graph.constants import constant_nodes
from warpline.rulekit.graph.parts import Part, every_step, parts
from warpline.rulekit.made_outside import made_outside
from warpline.wire.dataflow import DIRECT, MODULE

_FILLED = (
    "`torch.where` takes a number as it is. Here a tensor is filled with it first: {calls} operators, which "
    "take {spent} ({share})."
)
_OUTSIDE = (
    "The same tensor is made again in each step, outside torch, although nothing that it depends on changes, "
    "which takes {spent} ({share})."
)
_AGAIN = (
    "The same tensor is computed again in each step, although nothing that it depends on changes: {calls} "
    "operators, which take {spent} ({share})."
)


class ConstantRebuilt(Rule):
    area = "fusion"
    covers = ("unfused-elementwise",)
    adds_up = True

    def find(self, context: Context) -> Iterator[Draft]:
        graph = graph_around(context.profile.facts.dataflow)
        if graph is None:
            return
        graph = without_drawn(context, graph)
        chosen = set[int]()
        for each in chosen_numbers(context, graph):
            own = parts(context, graph, each.nodes)
            if context.matters(sum(part.step_ms for part in own)):
                chosen.update(node.index for node in each.nodes)
                said = _FILLED, "operators that fill tensors", "filling tensors"
                yield _draft(context, each.place, said, each.nodes, own, each.fix)
        computed, made = _by_function(graph), made_outside(context, graph)
        for function in {**computed, **made}:
            nodes = [node for node in computed.get(function, ()) if node.index not in chosen]
            yield from _of_function(context, graph, function[1], nodes, made.get(function, {}))


def _of_function(
    context: Context, graph: Graph, name: str, nodes: list[Node], made: dict[LineCost, list[LineCost]]
) -> Iterator[Draft]:
    """What a function computes again, and ``made``: what makes tensors for it outside torch."""
    own = parts(context, graph, nodes)
    outside = _outside(made, own)
    every = [*own, *(part for each in outside.values() for part in each)]
    if not context.adds_up(sum(part.step_ms for part in every)):
        return
    # What datasets make of an index is data.
    if any(part.cost.loader_ms > 0 for part in every):
        return
    heads = [
        Part(cost, float(cost in made[cost]), sum(part.step_ms for part in each))
        for cost, each in outside.items()
    ]
    at = [*(part for part in own if every_step(part.cost)), *heads]
    place = made_at(context, graph, name, nodes, at)
    if place is not None and all(every_step(part.cost) for part in every):
        mostly = 2 * sum(part.step_ms for part in heads) > sum(part.step_ms for part in every)
        said = _OUTSIDE if mostly else _AGAIN, "operators on constants", "computing constants"
        fix = partial(as_buffer, context, graph, name, place, nodes)
        yield _draft(context, place, said, nodes, every, fix)


def _outside(made: dict[LineCost, list[LineCost]], own: list[Part]) -> dict[LineCost, list[Part]]:
    """What lines take that make tensors outside torch, with those below them; each of these once."""
    known, found = {part.place for part in own}, {}
    for cost, lines in made.items():
        fresh = [line for line in lines if line.place not in known]
        known.update(line.place for line in fresh)
        found[cost] = [Part(line, 1.0, line.step_ms) for line in fresh]
    return found


def _by_function(graph: Graph) -> dict[tuple[str, str], list[Node]]:
    found: dict[tuple[str, str], list[Node]] = {}
    for node in constant_nodes(graph):
        site = graph.site(node)
        if site is not None and site.via in (DIRECT, MODULE):
            found.setdefault((site.file, site.function), []).append(node)
    return found


def _draft(
    context: Context,
    place: tuple[str, int],
    said: tuple[str, str, str],
    nodes: list[Node],
    own: list[Part],
    fix: Callable[[], Fix] | Fix,
) -> Draft:
    """``said``: the message, and what its numbers are called."""
    spent, (message, operators, work) = sum(part.step_ms for part in own), said
    return context.draft(
        place,
        message,
        {"calls": count(operators, len(nodes), "per step"), **context.spent(work, spent)},
        cause=max(own, key=lambda part: part.step_ms).place,
        cost_ms=spent,
        change=Together(tuple(Scale((part.place,), device=part.left, host=part.left) for part in own)),
        fixes=[fix],
    )
