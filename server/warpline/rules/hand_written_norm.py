"""A normalisation is written out op by op instead of as one fused call.

## What it does

Finds LayerNorm and RMSNorm written with means, squares and roots, in a module or inside a function,
when their lines take a measurable part of the step. The fix calls `F.layer_norm` or `F.rms_norm`;
parameters and their names in the state dict stay the same. If the operators of a step were recorded, a
norm (a GroupNorm too) is recognized by what it computes, however it is written. If it cannot be edited,
the finding says why.

## Why is this slow

Each of the six to ten operations reads its input and writes its result, again in the backward pass, and
stores its operands until then. The fused kernel reads the input once, writes the output once, and
stores the input and one mean and one deviation per row.

## Example

```python
import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, size, eps=1e-12):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)  #> cost device_ms=2; op aten::mean count=25 device_ms=2
        var = (x - mean).pow(2).mean(-1, keepdim=True)  #> cost device_ms=5; op aten::pow count=25 device_ms=5
        normed = (x - mean) / torch.sqrt(var + self.eps)  #> cost device_ms=4
        # one gain and one shift a feature
        return self.gamma * normed + self.beta  #> found; cost device_ms=4; op aten::mul count=25 device_ms=4
```

## Use instead

```python
import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, size, eps=1e-12):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        # one gain and one shift a feature
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)
```

## Example

```python
import torch


def rms_norm(hidden, weight, eps=1e-6):
    dtype = hidden.dtype
    hidden = hidden.to(torch.float32)
    variance = hidden.pow(2).mean(-1, keepdim=True)  #> cost device_ms=5
    hidden = hidden * torch.rsqrt(variance + eps)  #> cost device_ms=3
    return weight * hidden.to(dtype)  #> found; cost device_ms=3
```

## Use instead

```python
import torch


def rms_norm(hidden, weight, eps=1e-6):
    return torch.nn.functional.rms_norm(hidden, hidden.shape[-1:], weight, eps)
```

## Example

If a LayerNorm would give other values nothing is edited, and the finding says why:

```python
def forward(self, x):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)  #> cost device_ms=5
    return self.a_2 * (x - mean) / (std + self.eps) + self.b_2  #> found; cost device_ms=5
```

## Use instead

Nothing is edited: `std` divides by one less than the size, and `eps` is added outside the root.

## Near misses

Standardizing over the batch is not a LayerNorm:

```python
def standardise(x):
    return (x - x.mean(0, keepdim=True)) / torch.sqrt(x.var(0, keepdim=True) + 1e-5)  #> cost device_ms=9
```

It takes almost no time:

```python
def norm(x):
    y = x - x.mean(-1, keepdim=True)  #> cost device_ms=0.01
    return y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)  #> cost device_ms=0.01
    # ...

def rest(x):
    return x @ x  #> cost device_ms=100
```

Already fused:

```python
import torch.nn.functional as F

def norm(self, x):
    return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)  #> cost device_ms=9
```

## Fix safety

Unsafe: the kernel sums in another order, and in float32 for every input type, so values change by
rounding (about 1e-6 of the value in float32, 1e-2 in bfloat16).

## References

- [torch.nn.functional.layer_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html)
- [torch.nn.functional.rms_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule
from warpline.rulekit.formulas.norm import Norm, norm
from warpline.rulekit.graph import NORM, by_hand, matched, without_formulas
from warpline.rulekit.graph.norm import tried_over
from warpline.rulekit.terms import Formula, atom, descend, formulas, without_casts
from warpline.rulekit.written_out import written_out

#: How a message begins.
_NAMES = {"LayerNorm": "A LayerNorm", "RMSNorm": "An RMSNorm"}
_KINDS = {"LayerNorm": "layer_norm", "RMSNorm": "rms_norm"}

#: What gives a number, such as ``dim ** 0.5``.
_NUMBERS = (cst.BinaryOperation, cst.UnaryOperation, cst.Float, cst.Integer)
_METRIC = "hand-written norm"
_REST = ". One fused kernel forward and one backward do the same."


class HandWrittenNorm(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        told = list(formulas(context, norm))
        for formula in told:
            what = (_METRIC, _NAMES[formula.found.kind], _REST)
            dims = formula.found.dims
            change = formula.replaced(_KINDS[formula.found.kind], *tried_over(dims, _rank(formula)))
            yield written_out(
                context, formula, formula.place, what, change, [partial(_fix, context, formula)]
            )
        for one in without_formulas(matched(context, NORM), told):
            what = (_METRIC, one.match.kind, _REST + by_hand(one.match))
            yield written_out(context, one, one.place, what, one.replaced(one.match.name, *one.match.words))


def _fix(context: Context, formula: Formula[Norm]) -> Fix:
    found, rewrite = formula.found, formula.rewrite
    if found.reason:
        raise Refused(found.reason)
    if found.kind == "RMSNorm" and _version(context) < (2, 9):
        raise Refused("this version of torch computes F.rms_norm with the same separate kernels")
    _check_parameters(formula)
    _check_types(formula)
    count = _trailing(formula)
    function = _KINDS[found.kind]
    # An inner cast that is not undone gives a result of that type: then the input is cast as well.
    inner = found.input if _keeps_cast(formula) else without_casts(found.input)
    tensor = rewrite.spell(inner)
    arguments = [tensor, f"{atom(tensor)}.shape[-{count}:]"]
    if "(" in tensor:
        # Named, so that it is not computed a second time for its shape.
        used = {node.value for node in formula.flow.source.nodes(cst.Name)}
        own = next((name for name in ("inner", "normed") if name not in used), "_normed")
        arguments = [f"{own} := {tensor}", f"{own}.shape[-{count}:]"]
    arguments.append(rewrite.spell(found.weight) if found.weight else "None")
    if function == "layer_norm":
        arguments.append(rewrite.spell(found.bias) if found.bias else "None")
    elif found.bias:
        raise Refused("F.rms_norm has no bias")
    arguments.append(rewrite.spell(found.eps) if found.eps else "0.0")
    return rewrite.to_call(f"torch.nn.functional.{function}", _short(arguments))


def _short(arguments: list[str]) -> list[str]:
    """``None, None, 1e-5`` at the end by keyword."""
    if "None" not in arguments:
        return arguments
    first = arguments.index("None")
    names = (
        ("input", "normalized_shape", "weight", "bias", "eps")
        if len(arguments) == 5
        else ("", "", "weight", "eps")
    )
    rest = [
        f"{name}={text}"
        for name, text in zip(names[first:], arguments[first:], strict=True)
        if text != "None"
    ]
    return arguments[:first] + rest


def _keeps_cast(formula: Formula[Norm]) -> bool:
    """Whether the type that the input was cast to is also the result's."""
    if formula.found.input.op != "cast":
        return False
    waiting = [formula.flow.terms[formula.rewrite.node]]
    while waiting:
        term = waiting.pop()
        if term.op == "cast" and term is not formula.found.input:
            return False
        if term.op in ("mul", "add", "cast"):
            waiting.extend(term.args)
    return True


def _version(context: Context) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", context.profile.manifest.torch_version)[:2])


def _trailing(formula: Formula[Norm]) -> int:
    """How many trailing dimensions are normalised."""
    dims, rank = formula.found.dims, _rank(formula)
    if rank:
        dims = tuple(dim - rank if dim >= 0 else dim for dim in dims)
    if sorted(dims) != list(range(-len(dims), 0)):
        raise Refused("it does not normalize the last dimensions, as the fused norms do")
    return len(dims)


def _rank(formula: Formula[Norm]) -> int:
    """The number of dimensions of the normalised tensors; 0 if it is unknown or differs."""
    ranks = {
        len(op.shapes[0])
        for cost in formula.costs
        for op in cost.ops
        if op.name == "aten::mean" and op.shapes
    }
    return ranks.pop() if len(ranks) == 1 else 0


def _check_parameters(formula: Formula[Norm]) -> None:
    """Gain and shift have to be as long as what is normalised."""
    owner, source = formula.flow.owner, formula.flow.source
    for term in (formula.found.weight, formula.found.bias):
        if owner is None or term is None or term.op != "attr":
            continue
        made = formula.flow.evaluator.members.get(str(term.value))
        inner = [call for call in descend(made, cst.Call) if call is not made] if made is not None else []
        sizes = [arg.value for arg in inner[0].args if arg.keyword is None] if inner else []
        only = source.literal(sizes[0]) if sizes else None
        single = only == 1 or isinstance(only, float)  # torch.ones(1), torch.tensor(2.0)
        number = any(isinstance(one, _NUMBERS) for one in source.assigned(f"self.{term.value}", owner))
        if len(sizes) > 1 or single or number:
            raise Refused("its parameters are not vectors of the last dimension's size")


def _check_types(formula: Formula[Norm]) -> None:
    for cost in formula.costs:
        for op in cost.ops:
            kinds = {kind for kind in op.dtypes if kind in ("float", "c10::Half", "c10::BFloat16")}
            if op.name == "aten::mul" and len(kinds) > 1:
                raise Refused(
                    "its input and its parameters have different types, which the fused norms do not accept"
                )
