"""A layer computes its result for all positions, and the step uses only some of them.

## What it does

Follows each product with a weight through the recorded step. It finds products with at most half of their
rows used: the other rows are dropped by an index or a slice, by targets that the loss ignores, or by a mask
of the loss. Ignored targets and zeros of the mask are counted in one step. It reports nothing if another
operator reads all rows, or if the record of the step is incomplete.

## Why is this slow

The head of a language model has a column for each word: for 30,000 words its product, its softmax and their
gradients often cost more than a layer, and their memory is the largest of the step. In masked language
modelling only about 15 % of the positions have a loss.

## Example

```python
import torch
import torch.nn.functional as F

def objective(model, ids, labels):
    #> tensor %20 shape=[30000,512] parameter=true; tensor %21 shape=[4096,512]
    #> tensor %22 shape=[4096] unscored=3500
    scores = model.head(model.encode(ids))
    #^ found; cost step_ms=9 device_ms=9 backward_ms=6
    #^ op aten::mm shapes=[[4096,512],[512,30000]] device_ms=3
    #^ op aten::mm phase=backward shapes=[[30000,4096],[4096,512]] device_ms=6
    #^ node aten.t.default args=[%20] shape=[512,30000]
    #^ node aten.mm.default args=[%21,%0] shape=[4096,30000]
    return F.cross_entropy(scores, labels, ignore_index=-100)
    #^ cost step_ms=3 device_ms=3
    #^ op aten::_log_softmax shapes=[[4096,30000]] device_ms=3
    #^ node aten._log_softmax.default args=[%1] shape=[4096,30000]
    #^ node aten.nll_loss_forward.default args=[%2,%22] shape=[]
```

## Use instead

Select the positions before the layer: `wanted = labels != -100`, then `model.head(states[wanted])` and
`labels[wanted]`. For the next token of a generation, `model.head(states[:, -1:])`.

## Fix safety

Unsafe: the loss is the same up to rounding. The edit is offered where one function calls a linear layer and
then selects the positions: it selects them of the layer's input, also of rows that a `view` regroups
before. So it does where a cross entropy in the same block ignores positions, or its losses are added up
with a mask: there it selects them of the targets, too. Where a function returns the layer's result and its
caller selects by an index, such as the last position, the function gets a parameter for that index, which
is all positions for other callers. Elsewhere the positions have to reach the layer. Selecting by a mask
makes the host wait for the number of rows, and none is offered for CUDA graphs, which cannot wait; if each
row has the same number of positions, `topk` or `gather` avoid that.

## References

- [torch.nn.CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)
- [BERT, section 3.1: masked language modelling](https://arxiv.org/abs/1810.04805)
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator
from functools import partial

from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count
from warpline.rulekit.before_layer import BY_HAND, before_layer
from warpline.rulekit.before_loss import before_loss
from warpline.rulekit.graph import graph_around
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.matched import FileLine
from warpline.rulekit.graph.rows import PartlyUsed, partly_used
from warpline.rulekit.positions_passed import by_parameter
from warpline.rulekit.saving import Spent

#: Of the rows. Selecting rows costs a copy of them and a wait, and fewer rows than half are worth both.
#: Chosen, not fitted.
MOST_USED = 0.5


class UnusedLogits(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        graph = graph_around(context.profile.facts.dataflow)
        if graph is None:
            return
        by_place: dict[tuple[FileLine, int], list[PartlyUsed]] = {}
        for found in partly_used(graph, MOST_USED):
            place = graph.place(found.taken or found.product)
            if place is not None:
                by_place.setdefault((place, found.columns), []).append(found)
        for (place, _), alike in by_place.items():
            yield from _judged(context, graph, alike, place)


def _judged(context: Context, graph: Graph, alike: list[PartlyUsed], place: FileLine) -> Iterator[Draft]:
    found, shares = alike[0], _shares(graph, alike)
    spent = Spent(context.costs(shares), lambda cost: _spent(found, cost) * shares[cost.place])
    unused, whole = 1 - found.used / found.rows, spent.total
    if not spent:
        return
    yield context.draft(
        place,
        "A layer with {columns} outputs is computed for {rows} positions, but the step uses only {used}. "
        "All of them take {spent} a step ({share}) here and in what follows.",
        {
            "columns": count("outputs", found.columns),
            "rows": count("positions", found.rows),
            "used": count("positions used", found.used),
            **context.spent("all positions", whole),
        },
        cause=spent.hottest.place,
        cost_ms=whole * unused,
        change=spent.without(context, unused),
        fixes=[partial(_fix, context, graph, found) if len(alike) == 1 else BY_HAND],
    )


def _fix(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Select the positions in the function that calls the layer, else where its caller says which ones."""
    for way in (before_layer, before_loss):
        try:
            return way(context, graph, found)
        except Refused:
            continue
    return by_parameter(context, graph, found)


def _shares(graph: Graph, alike: list[PartlyUsed]) -> dict[FileLine, float]:
    """The part of each line's calls that is theirs: of layers that run the same lines, often only the last
    has rows that nothing uses."""
    own = {node for found in alike for node in found.nodes if graph.place(node) is not None}
    like = collections.Counter(_call(graph, node) for node in graph.nodes if node.outputs)
    theirs, every = collections.Counter[FileLine](), collections.Counter[FileLine]()
    for call, times in collections.Counter(_call(graph, node) for node in own).items():
        if (at := call[0]) is not None:
            theirs[at] += times
            every[at] += like[call]
    return {at: theirs[at] / every[at] for at in theirs}


def _call(graph: Graph, node: Node) -> tuple[FileLine | None, str, int]:
    return graph.place(node), node.name, graph.size(node.outputs[0])


def _spent(found: PartlyUsed, cost: LineCost) -> float:
    """Device time of the line's operators on all rows, those of the backward pass included."""
    return min(cost.device_ms, sum(op.device_ms for op in cost.ops if _is_whole(op, found)))


def _is_whole(op: Op, found: PartlyUsed) -> bool:
    whole = found.rows * found.columns
    if any(math.prod(shape) == whole for shape in op.shapes if shape):
        return True
    tables = [shape for shape in op.shapes if len(shape) >= 2]
    if op.name == "aten::linear":
        return len(tables) > 1 and math.prod(tables[0][:-1]) * tables[1][0] == whole
    products = ("aten::mm", "aten::addmm", "aten::bmm")
    return op.name in products and len(tables) > 1 and tables[-2][-2] * tables[-1][-1] == whole
