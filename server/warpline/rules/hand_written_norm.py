"""A normalisation is written out op by op instead of as one fused call.

## What it does

Finds LayerNorm and RMSNorm written with means, squares and roots, in a module or inside a function,
when their lines take a measurable part of the step; a part may be in a function that nothing else calls.
The fix calls `F.layer_norm`, `F.rms_norm` or, for all but the batch with one gain a channel, `F.group_norm`,
with a gain of the input's type, since torch falls back to separate kernels where the types differ; parameters
and their names in the state dict stay the same.

If the operators of a step were recorded, a norm (GroupNorm, InstanceNorm and BatchNorm, too) is recognized
by what it computes, however it is written, also where a number multiplies it on the way (`scale` in the
advice). If it cannot be edited, the finding says why. In a `torch.autograd.Function` it is found with the
backward pass, where the function is applied.

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

Half precision is cast to float32 inside the fused kernel, so the casts go too:

```python
import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=9; op aten::mean shapes=[[8,64,768]] dtypes=float

    def forward(self, x):
        return (self._norm(x.float()) * self.weight).type_as(x)
        #^ found; cost device_ms=5; op aten::_to_copy shapes=[[8,64,768]] dtypes=c10::BFloat16
        #^ op aten::mul shapes=[[8,64,768],[768]] dtypes=float,float
```

## Use instead

```python
import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self.eps)
```

## Example

A norm over all but the batch, with one gain and one shift a channel, is a GroupNorm of one group:

```python
import torch
import torch.nn.functional as F
from torch import nn

TINY = 1e-8


class WholeNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones((1, channels, 1)))
        self.shift = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, sound):
        middle = sound.mean(2, keepdim=True).mean(1, keepdim=True)
        #^ cost device_ms=2; op aten::mean shapes=[[4,64,900]] dtypes=float
        #^ op aten::mean shapes=[[4,64,1]] dtypes=float
        spread = ((sound - middle) ** 2).mean(dim=2, keepdim=True).mean(dim=1, keepdim=True)
        #^ cost device_ms=5
        return self.scale * (sound - middle) / (spread + TINY).sqrt() + self.shift
        #^ found; cost device_ms=4; op aten::mul shapes=[[1,64,1],[4,64,900]] dtypes=float,float
```

## Use instead

```python
import torch
import torch.nn.functional as F
from torch import nn

TINY = 1e-8


class WholeNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.ones((1, channels, 1)))
        self.shift = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, sound):
        return F.group_norm(sound, 1, self.scale.view(-1), self.shift.view(-1), TINY)
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

## Fix safety

Unsafe: the kernel sums in another order, and in float32 for every input type, so values change by
rounding (about 1e-6 of the value in float32, 1e-2 in bfloat16, where a gain in float32 is rounded too).

## References

- [torch.nn.functional.layer_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html)
- [torch.nn.functional.rms_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html)
- [torch.nn.functional.group_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.group_norm.html)
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.profile import Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule
from warpline.rulekit.formulas.norm import Norm, norm
from warpline.rulekit.graph import NORM, by_hand, matched, without_formulas
from warpline.rulekit.graph.norm import tried_over
from warpline.rulekit.terms import Formula, Rewrite, Term, atom, descend, formulas, without_casts
from warpline.rulekit.written_out import written_out
from warpline.wire.precision import HALF
from warpline.wire.probing import CAST, MIXED, WIDE

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
        told = list(formulas(context, norm, helped=True))
        for formula in told:
            what = (_METRIC, _NAMES[formula.found.kind], _REST)
            words = tried_over(formula.found.dims, _rank(formula))
            words += CASTS[_types(context, formula)]
            change = formula.replaced(_KINDS[formula.found.kind], *words)
            yield written_out(
                context, formula, formula.place, what, change, [partial(_fix, context, formula)]
            )
        for one in without_formulas(matched(context, NORM), told):
            what = (_METRIC, one.match.kind, _REST + by_hand(one))
            yield written_out(context, one, one.place, what, one.replaced(one.match.name, *one.match.words))


class _Types(enum.Enum):
    """What the types of input, gain and result ask of the call.

    A fused kernel wants input and gain of one type: else torch does the same in separate kernels. Under
    autocast on a CUDA device layer_norm, and rms_norm from torch 2.12 on, cast all of it to float32."""

    ALIKE = "all of one type"
    NARROW = "casts around the norm go, and a gain in float32 is cast to the input's half precision"
    WIDE = "under autocast the call gives float32, which is cast back"
    MIXED = "a gain in float32 makes the result float32, so the input is cast to it"


#: The words that a norm is tried with.
CASTS = {_Types.ALIKE: (), _Types.NARROW: (CAST,), _Types.WIDE: (CAST, WIDE), _Types.MIXED: (CAST, MIXED)}


def _fix(context: Context, formula: Formula[Norm]) -> Fix:
    found, types = formula.found, _types(context, formula)
    # With a result in another type than the input's, a cast that follows stays.
    rewrite = formula.rewrite if types is _Types.MIXED else _with_cast(formula)
    if found.reason:
        raise Refused(found.reason)
    if found.kind == "RMSNorm" and context.torch_version < (2, 9):
        raise Refused("this version of torch computes F.rms_norm with the same separate kernels")
    if types is _Types.ALIKE and _has_channels(formula):
        return _one_group(formula, rewrite)
    _check_parameters(formula)
    _check_types(formula)
    count = _trailing(formula)
    function = _KINDS[found.kind]
    # An inner cast that is not undone gives a result of that type: then the input is cast as well.
    keeps = types is _Types.MIXED or _keeps_cast(found.input, formula.flow.terms[rewrite.node])
    tensor = rewrite.spell(found.input if keeps else without_casts(found.input))
    if types is _Types.MIXED and found.input.op != "cast":
        tensor = f"{atom(tensor)}.float()"
    named, again = tensor, atom(tensor)
    if "(" in tensor:
        # Named, so that it is not computed a second time for its shape.
        used = {node.value for node in formula.flow.source.nodes(cst.Name)}
        again = next((name for name in ("inner", "normed") if name not in used), "_normed")
        named = f"{again} := {tensor}"
    arguments = [named, f"{again}.shape[-{count}:]"]
    parameters = [found.weight, found.bias] if function == "layer_norm" else [found.weight]
    if function == "rms_norm" and found.bias:
        raise Refused("F.rms_norm has no bias")
    narrow = types is _Types.NARROW and not _has_half_gain(formula)
    for term in parameters:
        if term is not None and narrow:
            arguments.append(f"{atom(rewrite.spell(without_casts(term)))}.to({again}.dtype)")
        else:
            arguments.append(rewrite.spell(term) if term else "None")
    arguments.append(rewrite.spell(found.eps) if found.eps else "0.0")
    back = f".to({again}.dtype)" if types is _Types.WIDE else ""
    name = f"torch.nn.functional.{function}"
    others = [text for path, text in context.profile.sources.items() if path != formula.flow.source.path]
    unused = [one for one in formula.helpers if not any(f".{one.name.value}" in text for text in others)]
    return rewrite.to_call(name, _short(arguments), back, unused)


def _one_group(formula: Formula[Norm], rewrite: Rewrite) -> Fix:
    """A group norm of one group: it takes a number a channel, which layer_norm does not."""
    found = formula.found
    given = [f"{atom(rewrite.spell(one))}.view(-1)" if one else "None" for one in (found.weight, found.bias)]
    eps = rewrite.spell(found.eps) if found.eps else "0.0"
    return rewrite.to_call("torch.nn.functional.group_norm", [rewrite.spell(found.input), "1", *given, eps])


def _with_cast(formula: Formula[Norm]) -> Rewrite:
    """The formula with the cast behind it that gives its input's type back, where the input was cast."""
    flow, node, found = formula.flow, formula.rewrite.node, formula.found
    method = flow.source.parent(node)
    call = flow.source.parent(method) if isinstance(method, cst.Attribute) else None
    if found.input.op != "cast" or not isinstance(call, cst.Call) or not isinstance(method, cst.Attribute):
        return formula.rewrite
    x, name = without_casts(found.input), method.attr.value
    given = [flow.terms[arg.value] for arg in call.args if call.func is method]
    undone = (name == "type_as" and given == [x]) or (
        name == "to" and [(one.op, one.args, one.value) for one in given] == [("attr", (x,), "dtype")]
    )
    return Rewrite(flow, formula.rewrite.step, call) if undone else formula.rewrite


def _types(context: Context, formula: Formula[Norm]) -> _Types:
    """What the recorded operators say; of one type where there are none."""
    found, ops = formula.found, formula.forward
    if any(_is_mixed(op) for op in ops):
        return _Types.MIXED
    term = formula.flow.terms[_with_cast(formula).node]
    cast = found.input.op == "cast" and not _keeps_cast(found.input, term)
    names = {"aten::_to_copy"} if cast else {"aten::mean", "aten::var"}
    if not any(op.name in names and op.dtypes[:1] and op.dtypes[0] in HALF for op in ops):
        return _Types.ALIKE
    casts = context.on_gpu and (found.kind == "LayerNorm" or context.torch_version >= (2, 12))
    if casts and context.autocast:
        return _Types.WIDE
    return _Types.NARROW if cast else _Types.ALIKE


def _is_mixed(op: Op) -> bool:
    """A product or quotient of two tensors in half precision and float32."""
    kinds = {kind for kind in op.dtypes if kind in HALF or kind == "float"}
    return op.name in ("aten::mul", "aten::div") and len(kinds) > 1


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


def _keeps_cast(given: Term, result: Term) -> bool:
    """Whether the type that the input was cast to is also the result's."""
    if given.op != "cast":
        return False
    waiting = [result]
    while waiting:
        term = waiting.pop()
        if term.op == "cast" and term is not given:
            return False
        if term.op in ("mul", "add", "cast"):
            waiting.extend(term.args)
    return True


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
    ranks = {len(op.shapes[0]) for op in formula.forward if op.name == "aten::mean" and op.shapes}
    return ranks.pop() if len(ranks) == 1 else 0


def _check_parameters(formula: Formula[Norm]) -> None:
    """Gain and shift have to be as long as what is normalised."""
    owner, source = formula.flow.owner, formula.flow.source
    for term in (formula.found.weight, formula.found.bias):
        if owner is None or term is None or term.op != "attr":
            continue
        sizes = _sizes(formula, term)
        only = source.literal(sizes[0]) if sizes else None
        single = only == 1 or isinstance(only, float)  # torch.ones(1), torch.tensor(2.0)
        number = any(isinstance(one, _NUMBERS) for one in source.assigned(f"self.{term.value}", owner))
        if len(sizes) > 1 or single or number:
            raise Refused("its parameters are not vectors of the last dimension's size")


def _has_half_gain(formula: Formula[Norm]) -> bool:
    """Whether the products with a vector of the last dimension's size are in half precision."""
    kinds: set[str] = set()
    for op in formula.forward:
        if op.name == "aten::mul" and len(op.shapes) > 1 and all(op.shapes[:2]):
            smaller, larger = sorted(op.shapes[:2], key=math.prod)
            if smaller[-1] == larger[-1] and math.prod(smaller) < math.prod(larger):
                kinds.update(op.dtypes[:2])
    return bool(kinds) and kinds <= HALF


def _check_types(formula: Formula[Norm]) -> None:
    """What is in two types has to be in float32 because of its smaller tensor: the gain, or the root."""
    for op in filter(_is_mixed, formula.forward):
        smaller = min(range(2), key=lambda at: math.prod(op.shapes[at]) if len(op.shapes) > at else 0)
        if op.dtypes[smaller] != "float":
            raise Refused(
                "its input and its parameters have different types, which the fused norms do not accept"
            )


def _sizes(formula: Formula[Norm], term: Term) -> list[cst.BaseExpression]:
    """The sizes that a parameter is made with: 256 of ``nn.Parameter(torch.ones(256))``."""
    made = formula.flow.evaluator.members.get(str(term.value))
    inner = [call for call in descend(made, cst.Call) if call is not made] if made is not None else []
    sizes = [arg.value for arg in inner[0].args if arg.keyword is None] if inner else []
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        return [element.value for element in sizes[0].elements]
    return sizes


def _has_channels(formula: Formula[Norm]) -> bool:
    """Whether the norm is over all dimensions but the batch, with one gain and shift for each channel."""
    found, rank, literal = formula.found, _rank(formula), formula.flow.source.literal
    if found.kind != "LayerNorm" or rank < 3 or {dim % rank for dim in found.dims} != {*range(1, rank)}:
        return False
    for sizes in (_sizes(formula, term) for term in (found.weight, found.bias) if term is not None):
        if len(sizes) != rank or any(literal(one) != 1 for at, one in enumerate(sizes) if at != 1):
            return False
    pairs = [op.shapes for op in formula.forward if op.name == "aten::mul" and len(op.shapes) == 2]
    return any(
        len(whole) == rank and tuple(gain) == (1, whole[1], *[1] * (rank - 2)) != tuple(whole)
        for pair in pairs
        for gain, whole in (pair, reversed(pair))
    )
