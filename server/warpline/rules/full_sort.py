"""A tensor is sorted, and only the first few entries are read.

## What it does

Finds `sort` and `argsort` whose results are only sliced at one end, to at most a quarter of the entries.

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

`scores.topk(100, dim=1).indices`.

## Near misses

All entries are read:

```python
import torch

for scores in loader:
    order = scores.argsort(1)
    #^ cost step_ms=5 device_ms=5; op aten::sort device_ms=5 shapes=[[64,400000]]
    #^ node aten.argsort.default args=[%9,1] shape=[64,400000]
    ranks = order * 2  #> node aten.mul.Tensor args=[%0,2] shape=[64,400000]
```

The middle is read, as for a median:

```python
import torch

for scores in loader:
    middle = scores.sort(1).values[:, 200000]
    #^ cost step_ms=5 device_ms=5; op aten::sort device_ms=5 shapes=[[64,400000]]
    #^ node aten.sort.default args=[%9,1] shape=[64,400000]
    #^ node aten.select.int args=[%0,1,200000] shape=[64]
```

It takes almost no time:

```python
import torch

for scores in loader:
    first = scores.sort(1).values[:, :3]
    #^ cost step_ms=0.01; op aten::sort device_ms=0.01 shapes=[[64,4000]]
    #^ node aten.sort.default args=[%9,1] shape=[64,4000]
    #^ node aten.slice.Tensor args=[%0,1,0,3] shape=[64,3]
    train(first)  #> cost device_ms=10
```

## Fix safety

No edit is offered. Values are the same; of equal entries `topk` may take other ones.

## References

- [torch.topk](https://docs.pytorch.org/docs/stable/generated/torch.topk.html)
"""

from __future__ import annotations

from collections.abc import Iterator

from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft, Rule, count
from warpline.rulekit.graph import graph_around
from warpline.rulekit.graph.sorts import SORTS, PartlyRead, partly_read
from warpline.rulekit.saving import without


class FullSort(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        graph = graph_around(context.profile.facts.dataflow)
        if graph is None:
            return
        by_line: dict[tuple[str, int], PartlyRead] = {}
        for found in partly_read(graph):
            if (place := graph.place(found.node)) is not None:
                by_line.setdefault(place, found)
        for cost in context.costs(by_line):
            spent = _sorting(cost)
            if context.matters(spent):
                yield _draft(context, cost, by_line[cost.place], spent)


def _sorting(cost: LineCost) -> float:
    own = (
        op.device_ms for op in cost.ops if op.phase == "forward" and op.name.removeprefix("aten::") in SORTS
    )
    return min(sum(own), cost.step_ms)


def _draft(context: Context, cost: LineCost, found: PartlyRead, spent: float) -> Draft:
    smallest = "" if found.largest else " and `largest=False`"
    return context.draft(
        cost.place,
        "{size} entries are sorted and only {read} are read. The sort takes {spent} a step ({share}).",
        {
            "size": count("entries sorted", found.size),
            "read": count("entries read", found.read),
            **context.spent("sort", spent),
        },
        cost_ms=spent,
        # What `topk` takes instead was not tried.
        change=without(context, cost, spent),
        fixes=[f"call `torch.topk` for as many entries as are read, with the same `dim`{smallest}"],
    )
