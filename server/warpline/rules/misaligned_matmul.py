"""A matrix product has a dimension that does not fit the tensor cores.

## What it does

Finds costly half-precision products in which a dimension is not a multiple of eight, and names the next
multiple. If the size is one number in the source (a vocabulary size, a number of classes), the fix pads
it.

## Why is this slow

Tensor cores load eight half-precision numbers at a time from aligned addresses. If a row has another
length, all rows but the first are misaligned, and a slower kernel with narrower loads runs.

## Example

```python
import torch

VOCABULARY = 50257  #> found
head = torch.nn.Linear(768, VOCABULARY, bias=False)
for x in loader:
    logits = head(x)  #> cost device_ms=20
    #^ op aten::mm device_ms=15 shapes=[[8192,768],[768,50257]] dtypes=c10::BFloat16,c10::BFloat16
```

## Use instead

```python
import torch

VOCABULARY = 50304
head = torch.nn.Linear(768, VOCABULARY, bias=False)
for x in loader:
    logits = head(x)
```

## Near misses

Every size is a multiple of eight:

```python
y = x @ w
#^ cost device_ms=20; op aten::mm device_ms=20 shapes=[[8192,768],[768,50304]] dtypes=c10::Half,c10::Half
```

Float32 without tensor cores:

```python
y = x @ w  #> cost device_ms=20; op aten::mm device_ms=20 shapes=[[8192,768],[768,50257]] dtypes=float,float
```

It takes almost no time:

```python
y = x @ w
#^ cost device_ms=0.01; op aten::mm device_ms=0.01 shapes=[[64,7],[7,9]] dtypes=c10::Half,c10::Half
z = f(x)  #> cost device_ms=50
```

## Fix safety

Unsafe: the padded layer has more parameters, so older checkpoints no longer fit. A softmax over the
padded scores includes the new entries unless they are masked.

## References

- [Matrix multiplication background: tensor core requirements](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html#requirements-tc)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.change import Replace
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms, percent
from warpline.rulekit.saving import less_device_time
from warpline.wire.precision import HALF

_PIECE = 8  # numbers of two bytes in one load of a tensor core
_PADDED = 64  # what the largest tiles divide by


class MisalignedMatmul(Rule):
    area = "precision"
    needs = ("kernels", "tensor cores")

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            by_size = _by_size(cost)
            if not by_size:
                continue
            size = max(by_size, key=lambda size: by_size[size])
            spent = min(by_size[size], cost.step_ms)
            if not context.matters(spent):
                continue
            padded = -(-size // _PADDED) * _PADDED if size > _PADDED else -(-size // _PIECE) * _PIECE
            saving = (1 - costs.value("misaligned")) * spent
            yield context.draft(
                _place(context, cost, size),
                (cost.file, cost.line),
                "Matrix products with a dimension of {size} take {spent} ({share}). {size} is not a "
                "multiple of {piece}; {padded} would fit the tensor cores.",
                {
                    "size": count("size", size, "elements"),
                    "piece": count("elements a tensor core loads at a time", _PIECE, "elements"),
                    "spent": ms("misaligned products", spent),
                    "share": percent("misaligned products", context.share(spent)),
                    "padded": count("padded size", padded, "elements"),
                },
                cost_ms=spent,
                saving_ms=saving,
                change=Replace(
                    "padded",
                    ((cost.file, cost.line),),
                    less_device_time([cost], saving, assumed=True),
                    (str(size), str(padded)),
                    (min(1.0, spent / cost.device_ms) if cost.device_ms else 1.0,),
                ),
                fixes=[partial(_fix, context, cost, size, padded)],
            )


def _by_size(cost: LineCost) -> dict[int, float]:
    """Device time by the size that does not fit."""
    found: dict[int, float] = {}
    for op in cost.ops:
        for size in _odd_sizes(op):
            found[size] = found.get(size, 0.0) + op.device_ms
    return found


def _odd_sizes(op: Op) -> set[int]:
    """Row lengths of the two matrices: they decide how rows are aligned."""
    if op.name not in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm") or not op.dtypes:
        return set()
    matrices = op.shapes[1:3] if op.name in ("aten::addmm", "aten::baddbmm") else op.shapes[:2]
    sizes = {size for shape in matrices if len(shape) >= 2 for size in shape[-2:]}
    return {size for size in sizes if size % _PIECE and size > 1} if op.dtypes[0] in HALF else set()


def _literals(context: Context, cost: LineCost, size: int) -> tuple[Source | None, list[cst.Integer]]:
    """Where the number stands, in the file of the line, in the script, then in the modules' files."""
    modules = [site.file for site in context.sites("module")]
    for file in dict.fromkeys([cost.file, context.profile.manifest.script, *modules]):
        source = context.source(file)
        if source is not None:
            found = [node for node in source.nodes(cst.Integer) if node.evaluated_value == size]
            if found:
                return source, found
    return None, []


def _place(context: Context, cost: LineCost, size: int) -> tuple[str, int]:
    source, found = _literals(context, cost, size)
    return (
        (source.path, source.line(found[0]))
        if source is not None and len(found) == 1
        else (cost.file, cost.line)
    )


def _fix(context: Context, cost: LineCost, size: int, padded: int) -> Fix:
    source, found = _literals(context, cost, size)
    if source is None:
        raise Refused("the size is not a number in the source")
    if len(found) > 1:
        raise Refused("the number occurs in several places, and not all of them may mean this size")
    edits = Edits(source)
    edits.replace(found[0], str(padded))
    return edits.fix("Pad the size", "unsafe")
