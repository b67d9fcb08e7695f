"""A tensor is sorted, and only the first few entries are read.

## What it does

Finds `sort` and `argsort` whose results are only sliced at one end, to at most a quarter of the entries; also
after a `flip`, or after another tensor was put into that order.

## Why is this slow

A sort moves every entry several times. `torch.topk` finds the largest or smallest few in a few passes that
only read, and sorts no more than those.

## Example

```python
import torch

def best(scores):
    return torch.argsort(scores, dim=1, descending=True)[:, :100]
    #^ found; cost step_ms=5 device_ms=5; op aten::sort device_ms=5 shapes=[[64,400000]]
    #^ node aten.argsort.default args=[%9,1,True] shape=[64,400000]
    #^ node aten.slice.Tensor args=[%0,1,0,100] shape=[64,100]

for vectors in loader:
    show(best(vectors @ index.T))  #> cost device_ms=10
```

## Use instead

```python
import torch

def best(scores):
    return torch.topk(scores, min(100, scores.shape[1]), dim=1).indices

for vectors in loader:
    show(best(vectors @ index.T))
```

## Example

The first entries are read elsewhere, and how many is only known there:

```python
import torch

def ranked(scores):
    return scores.argsort(-1)
    #^ found; cost step_ms=5 device_ms=5; op aten::sort device_ms=5 shapes=[[64,400000]]
    #^ node aten.argsort.default args=[%9,-1] shape=[64,400000]

for vectors in loader:
    show(ranked(vectors @ index.T)[:, :number])
    #^ cost device_ms=10; node aten.slice.Tensor args=[%0,1,0,100] shape=[64,100]
```

## Use instead

```python
import torch

def ranked(scores, count):
    return scores.topk(min(count, scores.shape[-1]), largest=False).indices

for vectors in loader:
    show(ranked(vectors @ index.T, count=number)[:, :number])
```

## Fix safety

Safe where only values are read, without gradients. Unsafe for indices: of equal entries `topk` may take
other ones. Where a function returns what it sorts, its only caller is followed, and passes how many it reads.
No edit is offered where that is not known before the sort, where the last ones are read, which come in
another order, and for stable sorts.

## References

- [torch.topk](https://docs.pytorch.org/docs/stable/generated/torch.topk.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.change import Change, Replace
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count
from warpline.rulekit.graph import Graph, graph_around
from warpline.rulekit.graph.sorts import PartlyRead, partly_read
from warpline.rulekit.saving import without
from warpline.rulekit.topk import first_few
from warpline.wire.probing import SORTS


class FullSort(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        graph = graph_around(context.profile.facts.dataflow)
        if graph is None:
            return
        by_line: dict[tuple[str, int], list[PartlyRead]] = {}
        for found in partly_read(graph):
            if (place := graph.place(found.node)) is not None:
                by_line.setdefault(place, []).append(found)
        for cost in context.costs(by_line):
            spent = _sorting(cost)
            if context.matters(spent):
                yield _draft(context, graph, cost, by_line[cost.place], spent)


def _sorting(cost: LineCost) -> float:
    own = (
        op.device_ms for op in cost.ops if op.phase == "forward" and op.name.removeprefix("aten::") in SORTS
    )
    return min(sum(own), cost.step_ms)


def _draft(context: Context, graph: Graph, cost: LineCost, sorts: list[PartlyRead], spent: float) -> Draft:
    found = sorts[0]
    return context.draft(
        cost.place,
        "{size} entries are sorted and only {read} are read. The sort takes {spent} a step ({share}).",
        {
            "size": count("entries sorted", found.size),
            "read": count("entries read", found.read),
            **context.spent("sort", spent),
        },
        cost_ms=spent,
        change=_change(context, graph, cost, sorts, spent),
        fixes=[partial(_fix, context, graph, cost, sorts)],
    )


def _change(context: Context, graph: Graph, cost: LineCost, sorts: list[PartlyRead], spent: float) -> Change:
    """What a trial says of `topk`. A bound where it was not tried, as where sorts of the line differ."""
    most = without(context, cost, spent)
    asked = {(str(one.dim), str(one.read), *(["largest"] if one.largest else [])) for one in sorts}
    if len(asked) != 1 or not _all_of(graph, cost, sorts) or cost.device_ms <= 0:
        return most
    return Replace("topk", (cost.place,), most, asked.pop(), (min(1.0, spent / cost.device_ms),))


def _all_of(graph: Graph, cost: LineCost, sorts: list[PartlyRead]) -> bool:
    """Whether ``sorts`` are all sorts of the line."""
    return len(_ran(graph, cost)) == len(sorts)


def _ran(graph: Graph, cost: LineCost) -> list[int]:
    """What the sorts of the line are given."""
    return [n.inputs[0] for n in graph.nodes if n.name in SORTS and graph.place(n) == cost.place]


def _fix(context: Context, graph: Graph, cost: LineCost, sorts: list[PartlyRead]) -> Fix:
    kinds = {(len(graph.shape(value)), graph.dtype(value)) for value in _ran(graph, cost)}
    if len({(one.dim, one.largest) for one in sorts}) != 1 or len(kinds) != 1:
        raise Refused("the line sorts in several ways: call `torch.topk` where only a few are read")
    # Where another call reads most of fewer entries, the text says that it reads no more than these.
    return first_few(context, graph, sorts[0])
