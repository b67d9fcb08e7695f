"""Attention is written out as two products and a softmax instead of one fused call.

## What it does

Finds `softmax(q @ k.T * scale + mask) @ v` by what its lines cost, however it is spread over
statements, and puts `F.scaled_dot_product_attention` in its place, with mask, scale, causal form and
dropout as they were.

## Why is this slow

The matrix of scores has a number for every pair of positions. Written out, it goes to memory and
back at every operation, forward and backward, and several copies of it are kept until the backward
pass. The fused kernels work through it in tiles that never leave the chip.

## Example

```python
import math
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def forward(self, x, mask=None):
        b, t, c = x.shape
        q = self.query(x).view(b, t, self.heads, -1).transpose(1, 2)
        k = self.key(x).view(b, t, self.heads, -1).transpose(1, 2)
        v = self.value(x).view(b, t, self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  #> cost device_ms=6
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))  #> cost device_ms=3
        weights = F.softmax(scores, dim=-1)  #> cost device_ms=3
        weights = F.dropout(weights, self.p, self.training)  #> cost device_ms=3
        out = weights @ v  #> found; cost device_ms=4
        return self.out(out.transpose(1, 2).reshape(b, t, c))
```

## Use instead

```python
import math
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def forward(self, x, mask=None):
        b, t, c = x.shape
        q = self.query(x).view(b, t, self.heads, -1).transpose(1, 2)
        k = self.key(x).view(b, t, self.heads, -1).transpose(1, 2)
        v = self.value(x).view(b, t, self.heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None if mask is None else mask != 0, dropout_p=self.p if self.training else 0.0
        )
        return self.out(out.transpose(1, 2).reshape(b, t, c))
```

## Example

A causal mask kept as a buffer becomes `is_causal`:

```python
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, size, block):
        super().__init__()
        self.register_buffer("tril", torch.tril(torch.ones(block, block)))
        self.dropout = nn.Dropout(0.1)

    def forward(self, q, k, v):
        t = q.shape[-2]
        w = torch.matmul(q, k.mT) * q.shape[-1] ** -0.5  #> cost device_ms=6
        w = w.masked_fill(self.tril[:t, :t] == 0, float("-inf"))  #> cost device_ms=3
        w = self.dropout(w.softmax(dim=-1))  #> cost device_ms=3
        return torch.matmul(w, v)  #> found; cost device_ms=4
```

## Use instead

```python
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, size, block):
        super().__init__()
        self.register_buffer("tril", torch.tril(torch.ones(block, block)))
        self.dropout = nn.Dropout(0.1)

    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout.p if self.dropout.training else 0.0
        )
```

## Near misses

A softmax that is no attention (a mixture of experts):

```python
import torch

def route(x, gate, experts):
    weights = torch.softmax(gate(x), dim=-1)  #> cost device_ms=3
    return weights @ experts  #> cost device_ms=30
```

Cheap:

```python
import torch

def attend(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v  #> cost device_ms=0.01

def rest(x):
    return x @ x  #> cost device_ms=100
```

Fused already:

```python
import torch.nn.functional as F

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)  #> cost device_ms=10
```

## Fix safety

Unsafe: the fused kernels sum in another order (differences of about 1e-6 of the value in float32,
1e-2 in bfloat16) and draw other random numbers for dropout. A row in which everything is masked
gives NaN or zeros where a mask value like -1e9 gave the mean of `v`.

## References

- [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import libcst as cst

from warpline.model.change import Fuse
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, ms, percent
from warpline.rulekit.terms import Flow, Formula, Rewrite, Term, atom, descend, formulas, without_casts

#: A masked score this low or lower is gone after the softmax.
_GONE = -1e4


@dataclass(frozen=True, slots=True)
class Attention:
    query: Term
    key: Term  # as the product took it: rows are features
    value: Term
    scale: tuple[Term, ...] = ()  # factors
    masks: tuple[Term, ...] = ()  # masked_fill, where, add or if terms, outermost first
    dropout: Term | None = None


class HandWrittenAttention(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for formula in formulas(context, attention):
            spent = formula.step_ms
            yield context.draft(
                formula.place,
                formula.hottest,
                "Attention is written out op by op: {spent} a step, {share}, with the whole matrix of scores "
                "in memory several times over.",
                {
                    "spent": ms("hand-written attention", spent),
                    "share": percent("hand-written attention", context.share(spent)),
                },
                cost_ms=spent,
                # The two products stay; what lies between them needs no pass through memory.
                saving_ms=spent - formula.fused_ms(),
                change=Fuse(formula.places),
                fixes=[partial(_fix, formula)],
            )


# -- what it is ------------------------------------------------------------------------------------


def attention(flow: Flow, term: Term) -> Attention | None:
    """``softmax(mask(q @ k * scale)) @ v``, dropout and casts between them allowed."""
    if term.op != "matmul":
        return None
    weights, value = without_casts(term.args[0]), term.args[1]
    dropout = None
    if weights.op == "dropout":
        weights, dropout = without_casts(weights.args[0]), weights
    elif weights.op == "if" and any(arg.op == "dropout" for arg in weights.args[1:]):
        dropout = weights
        weights = next(arg for arg in weights.args[1:] if arg.op != "dropout")
        weights = without_casts(weights)
    if weights.op != "softmax" or weights.value != -1:
        return None
    return _scores(without_casts(weights.args[0]), Attention(term, term, value, dropout=dropout))


def _scores(term: Term, found: Attention) -> Attention | None:
    term = without_casts(term)
    if term.op == "matmul":
        return replace(found, query=term.args[0], key=term.args[1])
    if term.op == "mul":
        for inner, factor in (term.args, term.args[::-1]):
            deeper = _scores(inner, found)
            if deeper is not None:
                return replace(deeper, scale=(*deeper.scale, factor))
    if term.op in ("masked_fill", "if"):
        inner = term.args[0] if term.op == "masked_fill" else term.args[2]
        deeper = _scores(inner, found)
        return deeper and replace(deeper, masks=(term, *deeper.masks))
    if term.op in ("where", "add"):
        for inner in term.args[1:] if term.op == "where" else term.args:
            deeper = _scores(inner, found) if _has_product(inner) else None
            if deeper is not None:
                return replace(deeper, masks=(term, *deeper.masks))
    return None


def _has_product(term: Term) -> bool:
    term = without_casts(term)
    return term.op == "matmul" or (
        term.op in ("mul", "masked_fill", "where", "add", "if")
        and any(_has_product(arg) for arg in term.args)
    )


# -- the edit --------------------------------------------------------------------------------------


def _fix(formula: Formula[Attention]) -> Fix:
    found, rewrite = formula.found, formula.rewrite
    key = found.key.args[0] if found.key.op == "transpose" and _last_two(found.key, formula) else None
    arguments = [rewrite.spell(found.query)]
    arguments.append(
        rewrite.spell(key) if key is not None else f"{atom(rewrite.spell(found.key))}.transpose(-2, -1)"
    )
    arguments.append(rewrite.spell(found.value))
    arguments += _mask(formula)
    if found.dropout is not None:
        arguments.append(f"dropout_p={_dropout(found.dropout, rewrite)}")
    arguments += _scale(formula)
    edits = Edits(formula.flow.source)
    name = edits.add_import(
        "torch.nn.functional.scaled_dot_product_attention", "import torch.nn.functional as F"
    )
    rewrite.into(edits, rewrite.call(name, arguments))
    return edits.fix("Use F.scaled_dot_product_attention", "unsafe")


def _last_two(key: Term, formula: Formula[Attention]) -> bool:
    """Whether a transposition is of the last two dimensions (``(1, 2)`` is, of three)."""
    if key.value == (-2, -1):
        return True
    sizes = {
        len(op.shapes[0])
        for cost in formula.costs
        for op in cost.ops
        if op.shapes and op.name in ("aten::matmul", "aten::softmax", "aten::bmm") and len(op.shapes[0]) > 1
    }
    outer = {size for size in sizes if size > 3} or sizes
    if len(outer) == 1:
        size = outer.pop()
        return bool(tuple(dim % size for dim in key.value) == (size - 2, size - 1))
    return bool(key.value == (2, 3))


def _scale(formula: Formula[Attention]) -> list[str]:
    """Nothing when it is one over the root of the size of a head."""
    found, rewrite = formula.found, formula.rewrite
    if not found.scale:
        return ["scale=1.0"]
    if len(found.scale) == 1 and found.scale[0].op == "rsqrt":
        inside = found.scale[0].args[0]
        if (
            inside.op == "size"
            and inside.value == -1
            and inside.args[0] in (found.query, found.key.args[0] if found.key.args else None)
        ):
            return []
    for factor in found.scale:
        if factor.op == "attr" and _is_parameter(factor, formula.flow):
            raise Refused("its scale is a tensor, and the fused call takes a number")
    texts = [_number(factor, rewrite) for factor in found.scale]
    return [f"scale={' * '.join(texts)}"]


def _number(factor: Term, rewrite: Rewrite) -> str:
    if factor.op == "rsqrt":
        return f"{atom(rewrite.spell(factor.args[0]))} ** -0.5"
    return rewrite.spell(factor)


def _is_parameter(term: Term, flow: Flow) -> bool:
    made = flow.evaluator.members.get(str(term.value))
    return made is not None and flow.source.is_named(
        made.func, "Parameter", "tensor", "ones", "register_buffer"
    )


def _mask(formula: Formula[Attention]) -> list[str]:
    masks = formula.found.masks
    if not masks:
        return []
    if len(masks) > 1:
        raise Refused("several masks are laid over each other")
    mask, condition = masks[0], None
    if mask.op == "if":
        test, mask, _ = mask.args
        if test.op != "is_not" or test.args[1].op != "const" or test.args[1].value is not None:
            raise Refused("its mask depends on more than whether there is one")
        condition = formula.rewrite.spell(test.args[0])
    if condition is None and _is_causal(mask, formula):
        return ["is_causal=True"]
    text = _kept(mask, formula)
    return [
        f"attn_mask={text}" if condition is None else f"attn_mask=None if {condition} is None else {text}"
    ]


def _kept(mask: Term, formula: Formula[Attention]) -> str:
    """A boolean mask of what is kept, or one to be added."""
    spell = formula.rewrite.spell
    if mask.op == "add":
        added = next(arg for arg in mask.args if not _has_product(arg))
        return spell(added)
    hidden, low = (mask.args[1], mask.args[2]) if mask.op == "masked_fill" else (mask.args[0], mask.args[2])
    if mask.op == "where" and _has_product(mask.args[2]):
        low = mask.args[1]
    if not _is_gone(low):
        raise Refused("masked scores do not get a value that the softmax takes to zero")
    if mask.op == "where" and not _has_product(mask.args[2]):
        return spell(hidden)
    if hidden.op == "not":
        return spell(hidden.args[0])
    if hidden.op in ("eq", "ne"):
        opposite = "!=" if hidden.op == "eq" else "=="
        return f"{spell(hidden.args[0])} {opposite} {spell(hidden.args[1])}"
    return f"~{atom(spell(hidden))}"


def _is_gone(low: Term) -> bool:
    number = low.number
    if number is not None:
        return number <= _GONE
    return low.op == "attr" and low.value == "min" and low.args[0].op == "finfo"


def _is_causal(mask: Term, formula: Formula[Attention]) -> bool:
    """``masked_fill(tril == 0, -inf)`` with as many rows as columns."""
    if mask.op != "masked_fill" or not _is_gone(mask.args[2]):
        return False
    hidden = mask.args[1]
    wanted = "triu"
    if (hidden.op == "eq" and hidden.args[1].number == 0) or hidden.op == "not":
        hidden, wanted = hidden.args[0], "tril"
    hidden = without_casts(hidden)
    if hidden.op == "index":
        ends = [part.args[1] for part in hidden.args[1:] if part.op == "slice"]
        rows = [end for end in ends[-2:] if end.op != "const" or end.value is not None]
        if len(rows) != 2 or rows[0] is not rows[1]:
            return False
        hidden = hidden.args[0]
    if hidden.op == "attr":
        return _buffer(formula.flow, str(hidden.value)) == wanted
    if hidden.op not in ("tril", "triu") or hidden.op != wanted:
        return False
    diagonal = dict(hidden.value).get("diagonal") or 0
    square = hidden.args[0].op in ("ones", "ones_like") and len(set(hidden.args[0].args[:2])) == 1
    return square and diagonal == (0 if wanted == "tril" else 1)


def _buffer(flow: Flow, name: str) -> str | None:
    """ "tril" or "triu" when that is how the module's buffer is made."""
    if flow.owner is None:
        return None
    for call in descend(flow.owner, cst.Call):
        if flow.source.is_named(call.func, "register_buffer") and len(call.args) > 1:
            if flow.source.literal(call.args[0].value) != name:
                continue
            for inner in descend(call.args[1].value, cst.Call):
                if flow.source.is_named(inner.func, "tril", "torch.tril"):
                    return "tril"
                diagonal = flow.source.argument(inner, "diagonal", 1)
                if flow.source.is_named(inner.func, "triu", "torch.triu") and diagonal is not None:
                    return "triu" if flow.source.literal(diagonal.value) == 1 else None
    return None


def _dropout(term: Term, rewrite: Rewrite) -> str:
    if term.op == "if":
        inner = next(arg for arg in term.args[1:] if arg.op == "dropout")
        if inner is not term.args[1]:
            raise Refused("whether there is dropout depends on a condition that could not be followed")
        return f"({_dropout(inner, rewrite)}) if {rewrite.spell(term.args[0])} else 0.0"
    p, training = term.args[1], term.args[2]
    if training.op == "const" and training.value is True:
        return rewrite.spell(p)
    return f"{rewrite.spell(p)} if {rewrite.spell(training)} else 0.0"
