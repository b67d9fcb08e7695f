"""A loss is written out op by op instead of as one fused call.

## What it does

Finds cross entropy (of smoothed labels, too), binary cross entropy, squared, absolute and smooth errors
written with logarithms, sums and means, when their lines take a measurable part of the step. The fix calls
the fused function.

A loss may take several statements of a function. Where a mask leaves out the rows of one label, the fix names
that as `ignore_index`; other masks and weights stay, and the fused call gives one number for each row
(`reduction="none"`).

If the operators of a step were recorded, a loss is recognized by what it computes, however it is written
(with weights, masks, smoothed targets). If it cannot be edited, the finding says why.

## Why is this slow

A language model's scores have one number for every word of the vocabulary at every position. Each
separate operation reads and writes all of them, and autograd stores them.

## Example

```python
import torch
import torch.nn.functional as F


def loss_of(model, batch, target):
    logits = model(batch)  #> cost device_ms=20
    log_probs = torch.log(F.softmax(logits, dim=-1))  #> cost device_ms=6
    picked = log_probs.gather(1, target.unsqueeze(1)).squeeze(1)  #> cost device_ms=1
    return -picked.mean()  #> found; cost device_ms=1
```

## Use instead

```python
import torch
import torch.nn.functional as F


def loss_of(model, batch, target):
    logits = model(batch)
    return F.cross_entropy(logits, target)
```

## Example

```python
import torch

def bce(logits, labels):
    p = torch.sigmoid(logits)  #> cost device_ms=3
    return -(labels * torch.log(p) + (1 - labels) * torch.log(1 - p)).mean()  #> found; cost device_ms=9
```

## Use instead

```python
import torch

def bce(logits, labels):
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
```

## Near misses

A mean of squares, not of squared differences:

```python
def penalty(w):
    return (w ** 2).mean()  #> cost device_ms=9
```

It takes almost no time:

```python
def mse(a, b):
    return ((a - b) ** 2).mean()  #> cost device_ms=0.01

def rest(x):
    return x @ x  #> cost device_ms=100
```

Already fused:

```python
import torch.nn.functional as F

def loss_of(logits, target):
    return F.cross_entropy(logits, target)  #> cost device_ms=9
```

## Fix safety

Unsafe: the same value up to rounding (about 1e-6 of it in float32). The fused form stays finite where
the separate operations overflow or take the logarithm of zero. A constant of at most 1e-6 that prevents
that is dropped.

## References

- [Loss functions](https://docs.pytorch.org/docs/stable/nn.functional.html#loss-functions)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Rule
from warpline.rulekit.formulas.loss import Loss, loss
from warpline.rulekit.graph import LOSS, by_hand, matched, without_formulas
from warpline.rulekit.terms import Formula, atom, formulas
from warpline.rulekit.written_out import written_out

_METRIC = "hand-written loss"
_REST = "; the fused call reads its input once."


class HandWrittenLoss(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        told = list(formulas(context, loss))
        for formula in told:
            if formula.found.call == "binary_cross_entropy" and not context.on_gpu:
                continue  # on a CPU it is no faster than what is written out
            what = (_METRIC, formula.found.kind, _REST)
            change = formula.replaced(formula.found.call, *formula.found.words)
            yield written_out(context, formula, formula.place, what, change, [partial(_fix, formula)])
        for one in without_formulas(matched(context, LOSS), told):
            if one.match.name == "binary_cross_entropy" and not context.on_gpu:
                continue  # on a CPU it is no faster than what is written out
            what = (_METRIC, one.match.kind, _REST + by_hand(one))
            yield written_out(context, one, one.place, what, one.replaced(one.match.name, *one.match.words))


def _fix(formula: Formula[Loss]) -> Fix:
    found, rewrite = formula.found, formula.rewrite
    arguments, options = [rewrite.spell(term) for term in found.arguments], list(found.options)
    if found.smoothing is not None:
        options.insert(0, f"label_smoothing={rewrite.spell(found.smoothing)}")
    if found.ignored is not None:
        options.insert(0, f"ignore_index={rewrite.spell(found.ignored).removesuffix('.0')}")
    shape = ""
    if found.last and _rank(formula) > 2:  # the call wants the classes in dimension 1
        shape = f".view({atom(arguments[1])}.shape)" if found.apart else ""
        arguments = [f"{atom(arguments[0])}.flatten(0, -2)", f"{atom(arguments[1])}.flatten()"]
    edits = Edits(formula.flow.source)
    name = edits.add_import(f"torch.nn.functional.{found.call}", "import torch.nn.functional as F")
    rewrite.into(edits, rewrite.call(name, [*arguments, *options]) + shape)
    return edits.fix(f"Use F.{found.call}", "unsafe")


def _rank(formula: Formula[Loss]) -> int:
    """The most dimensions of what a softmax, or the right class, there was taken of; 0 where that is not
    known."""
    ops = [op for cost in formula.costs for op in cost.ops if op.phase == "forward" and op.shapes]
    taken = [op for op in ops if any(word in op.name for word in ("softmax", "logsumexp", "gather"))]
    return max((len(op.shapes[0]) for op in taken), default=0)
