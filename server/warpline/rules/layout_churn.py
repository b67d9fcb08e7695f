"""Copies turn a tensor into another layout or type, and nothing needs them.

## What it does

Finds explicit copies (`.contiguous()` after a permutation, `.float()`, `.half()`, `.to(dtype)`) that the step
does not need: every operator that reads the copy accepts any layout (a product takes a transposed matrix),
or is a `view` whose merged dimensions are reduced at once; or a later copy undoes it, and the operators in
between work in either layout; or the same tensor was copied in the same way before; or a tensor is cast to a
wider type and back without any computation in between. It does not report copies that another `view` needs,
casts by autocast, or casts through a narrower type, which round.

It also finds pointwise convolutions between transposes.

## Why is this slow

A copy reads and writes the whole tensor. Elementwise operators, convolutions of images and
`scaled_dot_product_attention` read permuted tensors as they are, and linear layers and norms work on the last
dimension, whatever the order of the others.

## Example

```python
import torch

class Stage(torch.nn.Module):
    def forward(self, x):
        y = self.mlp(self.conv(x).permute(0, 2, 3, 1))
        y = y.permute(0, 3, 1, 2).contiguous()
        #^ found; cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.permute.default args=[%9,[0,3,1,2]] shape=[32,128,64,64] function=Stage.forward
        #^ node aten.clone.default args=[%0,'{"memory_format":0}'] shape=[32,128,64,64] function=Stage.forward
        return x + y
        #^ cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.add.Tensor args=[%10,%1] shape=[32,128,64,64] function=Stage.forward

for images in loader:
    train(images)  #> cost device_ms=60
```

## Use instead

```python
import torch

class Stage(torch.nn.Module):
    def forward(self, x):
        y = self.mlp(self.conv(x).permute(0, 2, 3, 1))
        y = y.permute(0, 3, 1, 2)
        return x + y

for images in loader:
    train(images)
```

A model of convolutions is best in channels-last layout as a whole
(`model.to(memory_format=torch.channels_last)`).

## Example

```python
import torch

class Gate(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        #^ found; cost step_ms=4 device_ms=4 forward_ms=4
        #^ node aten.relu.default args=[%9] shape=[32,128,64,64] function=Gate.forward
        #^ node aten.clone.default args=[%0,'{"memory_format":"contiguous_format"}'] shape=[32,128,64,64]
        mean = x.view(32, 128, -1).mean(-1)
        #^ node aten.view.default args=[%1,[32,128,-1]] shape=[32,128,4096] function=Gate.forward
        #^ node aten.mean.dim args=[%2,[-1]] shape=[32,128] function=Gate.forward
        return x * mean[:, :, None, None]
        #^ node aten.view.default args=[%3,[32,128,1,1]] shape=[32,128,1,1] function=Gate.forward
        #^ node aten.mul.Tensor args=[%1,%4] shape=[32,128,64,64] function=Gate.forward

for images in loader:
    train(images)  #> cost device_ms=60
```

## Use instead

`mean = x.mean((2, 3))`, without the copy.

## Example

Convolutions that look at one place of a sequence at a time, between transposes, are linear layers. They are
found where a linear layer was faster when both were tried beside the script:

```python
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.first = nn.Conv1d(wide, hidden, kernel_size=1)
        self.second = nn.Conv1d(hidden, wide, 1, bias=False)

    def forward(self, x):
        y = self.first(x.transpose(1, 2)).relu()
        #^ cost step_ms=8 device_ms=8 forward_ms=8; tensor %8 shape=[512,128,1] parameter=true
        #^ node aten.transpose.int args=[%9,1,2] shape=[32,128,64] function=FeedForward.forward
        #^ node aten.convolution.default args=[%0,%8,None,[1],[0],[1],False,[0],1] shape=[32,512,64]
        #^ node aten.relu.default args=[%1] shape=[32,512,64] function=FeedForward.forward
        return self.second(y).transpose(1, 2)
        #^ found; cost step_ms=9 device_ms=9 forward_ms=9; tensor %7 shape=[128,512,1] parameter=true
        #^ node aten.convolution.default args=[%2,%7,None,[1],[0],[1],False,[0],1] shape=[32,128,64]
        #^ node aten.transpose.int args=[%3,1,2] shape=[32,64,128] function=FeedForward.forward
```

## Use instead

```python
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, wide, hidden):
        super().__init__()
        self.first = nn.Linear(wide, hidden)
        self.second = nn.Linear(hidden, wide, bias=False)

    def forward(self, x):
        y = self.first(x).relu()
        return self.second(y)
```

## Fix safety

Unsafe: kernels for another layout may round otherwise. The edit leaves out `.contiguous()` where everything
that reads the copy takes any layout. The recorded step has to show that nothing writes into the memory that
both would share, and that no `view` of yours works on what comes of it: it would raise an error. For other
copies no edit is offered. A linear layer's weight has one dimension less in a saved state than that of a
convolution; scripts that load one get no edit.

## References

- [torch.Tensor.contiguous](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.contiguous.html)
- [Channels last memory format](https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Replace, Scale, Together
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, count
from warpline.rulekit.graph import Graph, Node, whole_graph
from warpline.rulekit.graph.copies import (
    AGAIN,
    ANY_LAYOUT,
    CAST_BACK,
    FREED,
    REDUCED,
    THERE_AND_BACK,
    needless,
)
from warpline.rulekit.graph.parts import Part, parts
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.own_launches import launches_itself
from warpline.rulekit.pointwise_convolutions import Pointwise, as_linear, pointwise_convolutions
from warpline.rulekit.saving import leaving
from warpline.syntax.source import called_name
from warpline.wire.dataflow import LIBRARY

_COPIES = {"clone", "contiguous"}
#: Calls of the user's that raise an error, or do something else, for other strides.
_OF_STRIDES = (
    "view",
    "view_as",
    "as_strided",
    "stride",
    "is_contiguous",
    "data_ptr",
    "resize_",
    "set_",
    "view_as_complex",
)
_STRIDED = {"view", "_unsafe_view", "as_strided", "view_as"}
_RESHAPED = _STRIDED | {"reshape", "_reshape_alias", "flatten", "unflatten"}

_WHY = {
    ANY_LAYOUT: "everything that reads the copy accepts any layout",
    REDUCED: "only a `view` needs them, and the dimensions that it merges are reduced at once",
    THERE_AND_BACK: "a layout is changed and changed back",
    FREED: "it was changed by an earlier copy, and everything in between accepts any layout",
    AGAIN: "the same tensor was copied the same way before",
    CAST_BACK: "a tensor is cast to a wider type and back with nothing computed in between",
}
_BY_HAND = {
    ANY_LAYOUT: "leave out `.contiguous()`, and in a model of convolutions use "
    "`memory_format=torch.channels_last`",
    REDUCED: "leave out the copy, and reduce over the dimensions themselves (`dim` takes several), in any "
    "layout",
    THERE_AND_BACK: "keep one layout through these lines: linear layers and norms work on the last "
    "dimension, whatever the order of the others",
    FREED: "leave out the earlier copy, as before a convolution: then this one has nothing to copy",
    AGAIN: "copy it once and use that copy again",
    CAST_BACK: "leave out the casts",
}


class LayoutChurn(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        graph = whole_graph(context.profile.facts.dataflow)
        if graph is None:
            return
        for found in _by_function(graph).values():
            own = parts(context, graph, list(found))
            if context.matters(sum(part.step_ms for part in own)):
                yield _draft(context, graph, found, own)
        for one in pointwise_convolutions(context, graph):
            yield _linear(context, graph, one)


def _linear(context: Context, graph: Graph, one: Pointwise) -> Draft:
    """Convolutions that a linear layer can be tried for."""
    spent = sum(cost.step_ms for cost in one.costs)
    tried = (graph.place(node) for node in one.once)  # the lines of what reads the results, too
    places = tuple(dict.fromkeys(place for place in tried if place is not None))
    hottest = max(one.costs, key=lambda cost: cost.step_ms)
    return context.draft(
        hottest.place,
        "Pointwise convolutions between transposes take {spent} a step ({share}). `nn.Linear` computes the "
        "same on the last dimension, and was faster here.",
        context.spent("pointwise convolutions", spent),
        cost_ms=spent,
        change=Replace("pointwise", places, Scale(places), tuple(str(node.index) for node in one.once)),
        tried=True,
        fixes=[partial(as_linear, context, graph, one)],
    )


def _by_function(graph: Graph) -> dict[tuple[str, str], dict[Node, str]]:
    """The needless copies of each function, with the reason."""
    functions: dict[tuple[str, str], dict[Node, str]] = {}
    for copies in needless(graph):
        for node in copies.nodes:
            site = graph.site(node)
            if site is not None:
                functions.setdefault((site.file, site.function), {}).setdefault(node, copies.why)
    return functions


def _draft(context: Context, graph: Graph, found: dict[Node, str], own: list[Part]) -> Draft:
    spent = sum(part.step_ms for part in own)
    hottest = max(own, key=lambda part: part.step_ms)
    why = next(why for node, why in found.items() if graph.place(node) == hottest.place)
    return context.draft(
        hottest.place,
        f"{{copies}} copies a step change the layout or the type of a tensor without need: {_WHY[why]}. They "
        "take {spent} ({share}).",
        {
            "copies": count("needless copies", len(found), "per step"),
            **context.spent("needless copies", spent),
        },
        cost_ms=spent,
        # What reads the tensor may be slower without the copy.
        change=Together(tuple(leaving(context, part.place, part.left) for part in own)),
        fixes=[
            partial(without_copies, context, graph, [node for node in found if found[node] == ANY_LAYOUT])
            if {ANY_LAYOUT} <= set(found.values()) <= {ANY_LAYOUT, FREED}
            else _BY_HAND[why]
        ],
    )


def without_copies(context: Context, graph: Graph, copies: Collection[Node]) -> Fix:
    """The lines of ``copies`` without them. Raises Refused unless the recorded step shows that nothing writes
    into the memory which they would share, and that no ``view`` gets a tensor of their layout."""
    places = sorted({place for node in copies if (place := graph.place(node)) is not None})
    edits: dict[str, Edits] = {}
    for file, line in places:
        source = context.source(file)
        calls = [call for call in source.calls(line) if called_name(call) == "contiguous" and not call.args]
        ran = [node for node in graph.nodes if graph.place(node) == (file, line) and node.name in _COPIES]
        if len(calls) != 1 or any(node not in copies for node in ran):
            raise Refused("another copy of its line may be needed: leave out `.contiguous()` where it is not")
        called = calls[0].func
        if not isinstance(called, cst.Attribute):
            raise Refused("the call is not a method's")
        start, end = source.span(calls[0])[0], source.span(called.attr)[0]
        code = source.slice(start, end).rstrip().removesuffix(".").rstrip()
        edits.setdefault(file, Edits(source)).replace(calls[0], code)
    _nothing_writes(graph, copies)
    _no_view_follows(context, graph, copies)
    first, *rest = edits.values()
    return first.fix("Leave out the copy", "unsafe", *rest)


def _nothing_writes(graph: Graph, copies: Collection[Node]) -> None:
    root = storages(graph, copies)
    shared: dict[int, int] = {}
    for node in copies:
        family = root(node.outputs[0])
        shared[family] = min(node.index, shared.get(family, node.index))
    for node in graph.nodes:
        written = node.inputs[:1] if graph.is_in_place(node) else () if node.outputs else node.inputs
        if any(node.index > shared.get(root(value), node.index) for value in written):
            raise Refused("something writes into it, or into what it is a copy of")


def _no_view_follows(context: Context, graph: Graph, copies: Collection[Node]) -> None:
    after = set(_after(graph, copies))
    ran = {place for node in graph.nodes if (place := graph.place(node)) is not None}
    if launches_itself(context):
        raise Refused("kernels of the script's own may need its layout")
    for node in after:
        site = graph.site(node)
        if graph.is_in_place(node) and _is_merged(graph, node.inputs[0]):
            raise Refused("something writes through a view that would be a copy in another layout")
        name = graph.flow.names[graph.flow.name[node.index]]
        if not name.startswith("aten.") or (
            node.name in _STRIDED and site is not None and site.via == LIBRARY
        ):
            raise Refused("code of a library may need its layout")
    follow = {place for node in after if (place := graph.place(node)) is not None}
    for source in context.sources():
        for call in source.nodes(cst.Call):
            if called_name(call) not in _OF_STRIDES:
                continue
            lines = source.extent(source.statement(call) or call)
            here = {(source.path, line) for line in lines}
            before = not here & ran and context.reached.node(source, call) is True
            if here & follow or not (before or here & ran):
                raise Refused(
                    f"`{source.code(call.func)}` (line {lines[0]}) may need its layout: use `reshape`"
                )


def _is_merged(graph: Graph, value: int) -> bool:
    """Whether a value is a view in other dimensions, as ``flatten`` gives one if the layout allows it."""
    while (node := graph.producer.get(value)) is not None and node.inputs and node.name in VIEWS:
        if node.name in _RESHAPED:
            return True
        value = node.inputs[0]
    return False


def _after(graph: Graph, copies: Collection[Node]) -> Iterator[Node]:
    """All operators that work on what the copies give, or on what comes of that."""
    waiting, seen = [value for node in copies for value in node.outputs], set[int]()
    while waiting:
        for node in graph.consumers.get(waiting.pop(), ()):
            if node.index not in seen:
                seen.add(node.index)
                waiting += node.outputs
                yield node
