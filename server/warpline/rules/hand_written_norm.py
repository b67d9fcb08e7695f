"""A normalisation is written out op by op instead of as one fused call.

## What it does

Finds LayerNorm and RMSNorm written with means, squares and roots (in a module of their own or in
the middle of a function), by what their lines cost in forward and backward, and puts
`F.layer_norm` or `F.rms_norm` in their place. Parameters and their names in the state dict stay.

## Why is this slow

Each of the six to ten operations reads its input from memory and writes its result back, once more
in the backward pass, and keeps its operands until then. The fused kernel reads the input once and
writes the output once, and keeps the input, a mean and a deviation a row.

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

What cannot be a LayerNorm without other values is said, with the reason, and left alone:

```python
def forward(self, x):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)  #> cost device_ms=5
    return self.a_2 * (x - mean) / (std + self.eps) + self.b_2  #> found; cost device_ms=5
```

## Use instead

Nothing is edited: `std` divides by one less than the size, and `eps` is added outside the root.

## Near misses

Standardising over the batch is no LayerNorm:

```python
def standardise(x):
    return (x - x.mean(0, keepdim=True)) / torch.sqrt(x.var(0, keepdim=True) + 1e-5)  #> cost device_ms=9
```

It costs next to nothing:

```python
def norm(x):
    y = x - x.mean(-1, keepdim=True)  #> cost device_ms=0.01
    return y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)  #> cost device_ms=0.01
    # ...

def rest(x):
    return x @ x  #> cost device_ms=100
```

Fused already:

```python
import torch.nn.functional as F

def norm(self, x):
    return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)  #> cost device_ms=9
```

## Fix safety

Unsafe: the sums are taken in another order, and inside the kernel in float32 whatever the type of
the input, so values change by rounding (about 1e-6 of the value in float32, 1e-2 in bfloat16).

## References

- [torch.nn.functional.layer_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html)
- [torch.nn.functional.rms_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.terms import Flow, Formula, Term, atom, descend, formulas, without_casts

_GAIN = re.compile(r"(weight|gamma|gain|scale|[wg])\d*$")
_SHIFT = re.compile(r"(bias|beta|shift|b)\d*$")


@dataclass(frozen=True, slots=True)
class Norm:
    kind: str  # "LayerNorm" | "RMSNorm"
    input: Term
    dims: tuple[int, ...]
    eps: Term | None
    weight: Term | None = None
    bias: Term | None = None
    reason: str | None = None  # why no fused call gives the same


class HandWrittenNorm(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for formula in formulas(context, norm):
            spent = formula.step_ms
            yield context.draft(
                formula.place,
                formula.hottest,
                f"A {formula.found.kind} is written out op by op: {{spent}} a step, {{share}}, for what one "
                "fused kernel a pass does.",
                {
                    "spent": ms("hand-written norm", spent),
                    "share": percent("hand-written norm", context.share(spent)),
                },
                cost_ms=spent,
                saving_ms=spent - formula.fused_ms(),
                change=formula.fusing(),
                fixes=[partial(_fix, context, formula)],
            )


# -- what it is ------------------------------------------------------------------------------------


def norm(flow: Flow, term: Term) -> Norm | None:
    """``[weight *] (x - mean) * rsqrt(var + eps) [+ bias]``, or ``x * rsqrt(mean(x ** 2) + eps)``.

    Over the batch (dimension 0) it is neither."""
    found = _shifted(term)
    return found if found is not None and 0 not in found.dims else None


def _shifted(term: Term) -> Norm | None:
    term = without_casts(term)
    if term.op == "add":
        for inner, bias in (term.args, term.args[::-1]):
            if _is_parameter(bias, _SHIFT) and (found := _scaled(inner)):
                return Norm(found.kind, found.input, found.dims, found.eps, found.weight, bias, found.reason)
    return _scaled(term)


def _scaled(term: Term) -> Norm | None:
    factors, divisors = _product(term)
    spread = [factor.args[0] for factor in factors if factor.op == "rsqrt"]
    rest = [factor for factor in factors if factor.op != "rsqrt"]
    for factor in rest:
        found = None
        if len(spread) == 1 and not divisors:
            found = _normed(factor, *_with_eps(spread[0]))
        elif len(divisors) == 1 and not spread:
            found = _by_deviation(factor, divisors[0])
        if found is not None:
            others = [other for other in rest if other is not factor]
            if not others:
                return found
            if len(others) == 1 and _is_parameter(others[0], _GAIN):
                return Norm(found.kind, found.input, found.dims, found.eps, others[0], None, found.reason)
    return None


def _product(term: Term) -> tuple[list[Term], list[Term]]:
    """Factors and divisors, casts looked through."""
    factors: list[Term] = []
    divisors: list[Term] = []
    waiting = [term]
    while waiting:
        item = waiting.pop()
        bare = without_casts(item)
        if bare.op == "mul":
            waiting.extend(bare.args)
        elif bare.op == "div":
            waiting.append(bare.args[0])
            divisors.append(bare.args[1])
        else:
            factors.append(item if bare.op not in ("sub", "rsqrt") else bare)
    return factors, divisors


def _with_eps(term: Term) -> tuple[Term, Term | None]:
    if term.op == "add":
        for spread, eps in (term.args, term.args[::-1]):
            if without_casts(spread).op in ("var", "mean", "sub") and eps.op in ("const", "attr", "name"):
                return without_casts(spread), eps
    return without_casts(term), None


def _normed(factor: Term, spread: Term, eps: Term | None) -> Norm | None:
    """``factor`` times one over the root of ``spread``."""
    centred = _centre(factor)
    if centred is not None:
        inner, dims = centred
        correction = _variance(spread, inner, dims, factor)
        if correction is None:
            return None
        reason = (
            "the variance is divided by one less than the size, F.layer_norm's by the size"
            if correction
            else None
        )
        return Norm("LayerNorm", inner, dims, eps, reason=reason)
    if spread.op == "mean" and _same(spread.args[0], "pow", factor):
        dims, keep = spread.value
        return Norm("RMSNorm", factor, dims, eps) if keep and dims else None
    return None


def _by_deviation(factor: Term, divisor: Term) -> Norm | None:
    """``(x - mean) / (std + eps)``: near a LayerNorm, but not one."""
    centred = _centre(factor)
    if centred is None or divisor.op != "add":
        return None
    for root in divisor.args:
        if root.op == "sqrt" and _variance(root.args[0], *centred, factor) is not None:
            reason = (
                "eps is added to the deviation and not under the root, so F.layer_norm gives other values"
            )
            return Norm("LayerNorm", *centred, None, reason=reason)
    return None


def _centre(term: Term) -> tuple[Term, tuple[int, ...]] | None:
    """``x - mean(x)`` -> x and the dimensions."""
    if term.op != "sub" or term.args[1].op != "mean":
        return None
    inner, mean = term.args
    dims, keep = mean.value
    same = without_casts(mean.args[0]) is without_casts(inner)
    return (inner, dims) if same and keep and dims else None


def _variance(term: Term, inner: Term, dims: tuple[int, ...], centred: Term) -> int | None:
    """The correction (0 or 1) when ``term`` is the variance of ``inner``, else None."""
    if (
        term.op == "var"
        and without_casts(term.args[0]) is without_casts(inner)
        and term.value[:2] == (dims, True)
    ):
        return int(term.value[2])
    if term.op == "mean" and term.value == (dims, True) and _same(term.args[0], "pow", centred):
        return 0
    if term.op == "sub" and term.args[0].op == "mean" and _same(term.args[0].args[0], "pow", inner):
        square = term.args[1]
        return 0 if _same(square, "pow", None) and square.args[0].op == "mean" else None
    return None


def _same(term: Term, op: str, inner: Term | None) -> bool:
    """``pow(inner, 2)``; any inner when None."""
    return (
        term.op == op
        and term.args[1].number == 2
        and (inner is None or without_casts(term.args[0]) is without_casts(inner))
    )


def _is_parameter(term: Term, names: re.Pattern[str]) -> bool:
    """``self.gamma``, ``1 + self.weight``, or an argument that is called so."""
    if term.op == "add":
        return any(arg.number == 1 for arg in term.args) and any(
            _is_parameter(arg, names) for arg in term.args
        )
    term = without_casts(term)
    if term.op == "name":
        return bool(names.match(str(term.value[0])))
    return term.op == "attr" and term.args[0].op == "name" and term.args[0].value[0] == "self"


# -- the edit --------------------------------------------------------------------------------------


def _fix(context: Context, formula: Formula[Norm]) -> Fix:
    found, rewrite = formula.found, formula.rewrite
    if found.reason:
        raise Refused(found.reason)
    if found.kind == "RMSNorm" and _version(context) < (2, 9):
        raise Refused("this version of torch computes F.rms_norm with the same separate kernels")
    _check_parameters(formula)
    _check_types(formula)
    count = _trailing(formula)
    function = "layer_norm" if found.kind == "LayerNorm" else "rms_norm"
    # An inner cast that is not undone gives a result of that type: then the input is cast as well.
    inner = found.input if _keeps_cast(formula) else without_casts(found.input)
    tensor = rewrite.spell(inner)
    arguments = [tensor, f"{atom(tensor)}.shape[-{count}:]"]
    arguments.append(rewrite.spell(found.weight) if found.weight else "None")
    if function == "layer_norm":
        arguments.append(rewrite.spell(found.bias) if found.bias else "None")
    elif found.bias:
        raise Refused("F.rms_norm has no bias")
    arguments.append(rewrite.spell(found.eps) if found.eps else "0.0")
    edits = Edits(formula.flow.source)
    name = edits.add_import(f"torch.nn.functional.{function}", "import torch.nn.functional as F")
    rewrite.into(edits, rewrite.call(name, _short(arguments)))
    return edits.fix(f"Use F.{function}", "unsafe")


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
    dims = formula.found.dims
    ndims = {
        len(op.shapes[0])
        for cost in formula.costs
        for op in cost.ops
        if op.name == "aten::mean" and op.shapes
    }
    if len(ndims) == 1:
        size = ndims.pop()
        dims = tuple(dim - size if dim >= 0 else dim for dim in dims)
    if sorted(dims) != list(range(-len(dims), 0)):
        raise Refused("it normalises other dimensions than the last ones, which the fused norms do not")
    return len(dims)


def _check_parameters(formula: Formula[Norm]) -> None:
    """Gain and shift have to be as long as what is normalised."""
    owner = formula.flow.owner
    if owner is None:
        return
    for term in (formula.found.weight, formula.found.bias):
        made = (
            formula.flow.evaluator.members.get(str(term.value))
            if term is not None and term.op == "attr"
            else None
        )
        shapes = [call for call in descend(made, cst.Call) if call is not made] if made is not None else []
        if shapes and len([arg for arg in shapes[0].args if arg.keyword is None]) > 1:
            raise Refused("its parameters are no vectors of the last dimension's size")


def _check_types(formula: Formula[Norm]) -> None:
    for cost in formula.costs:
        for op in cost.ops:
            kinds = {kind for kind in op.dtypes if kind in ("float", "c10::Half", "c10::BFloat16")}
            if op.name == "aten::mul" and len(kinds) > 1:
                raise Refused(
                    "its input and its parameters have different types, which the fused norms do not take"
                )
