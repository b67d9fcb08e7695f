"""Attention is written as two matrix products and a softmax instead of one fused call.

## What it does

Finds `softmax(q @ k.T * scale + mask) @ v` when its lines take a measurable part of the step, however
it is written (einsum, bmm, masks of any kind: the operators of a step are recorded). The fix calls
`F.scaled_dot_product_attention` with the same mask, scale, causal form and dropout. A mask that is set
in place (`scores[..., i, j] = -inf` with `torch.triu_indices`) counts, also where a function of yours sets
it. An `assert` about the scores goes with them. If the source cannot be analyzed, the finding says so and
offers no edit.

`nn.MultiheadAttention` computes it so as well, unless it is called with `need_weights=False`: it returns the
weights. Where nothing in the step reads them, the finding is at the call.

A library may have a switch, such as timm's `set_fused_attn(False)` or diffusers' `set_attn_processor`. Where
a call of yours turns fused attention off by it, the finding is at that call, and the fix leaves it out. A
processor that diffusers' modules are given one by one (`set_processor`) is another one where it is made.

## Why is this slow

The score matrix has one number for every pair of positions. Every separate operation reads and writes
it, forward and backward, and several copies stay in memory until the backward pass. The fused kernels
compute it in tiles that stay on the chip.

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

## Fix safety

Unsafe: the fused kernels sum in another order (differences of about 1e-6 of the value in float32, 1e-2
in bfloat16) and draw other random numbers for dropout. A fully masked row gives NaN or zeros; a mask
value like -1e9 gave the mean of `v`.

## References

- [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Fuse
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source
from warpline.rulekit.costed import Costed
from warpline.rulekit.formulas.attention import Attention, attention, words
from warpline.rulekit.formulas.attention_call import fused_call
from warpline.rulekit.graph import ATTENTION, UNREAD, by_hand, graph_around, matched, without_formulas
from warpline.rulekit.graph.matched import Matched
from warpline.rulekit.graph.softmax import SOFTMAX
from warpline.rulekit.library_attention import asked_for, of_libraries
from warpline.rulekit.library_functions import in_frameworks
from warpline.rulekit.terms import Formula, formulas
from warpline.rulekit.written_out import written_out
from warpline.syntax.edits import attempted
from warpline.syntax.source import only_target

_METRIC = "hand-written attention"
_REST = ", with several copies of the whole score matrix in memory."
_FOR_WEIGHTS = (
    ": `nn.MultiheadAttention` returns its weights, unless it is called with `need_weights=False`, and "
    "nothing in the step reads them."
)
#: Position of `need_weights` among the arguments of its `forward`.
_POSITION = 4


class HandWrittenAttention(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        told = [one for one in formulas(context, attention) if _has_rank(context, one)]
        recorded = matched(context, ATTENTION)
        for formula in told:
            edit = attempted(partial(fused_call, formula))
            whole = formula if isinstance(edit, Fix) else _whole(formula, recorded)
            what = (_METRIC, "Attention", _REST)
            options = _options(formula, recorded)
            change = whole.replaced("attention", *options, otherwise=Fuse(whole.places))
            yield written_out(context, whole, formula.place, what, change, [edit])
        yield from _in_frameworks(context, self.name)
        yield from _asked_for(context)
        for one in without_formulas(recorded, told):
            what = (_METRIC, one.match.kind, _REST + by_hand(one))
            change = one.replaced("attention", *one.match.words, otherwise=Fuse(one.places))
            yield written_out(context, one, one.place, what, change)
        for one in matched(context, UNREAD):
            what = (_METRIC, "Attention", _FOR_WEIGHTS)
            change = one.replaced("attention", *one.match.words, otherwise=Fuse(one.places))
            fix = partial(without_weights, context, one.place)
            yield written_out(context, one, one.place, what, change, [fix])


def _whole(formula: Formula[Attention], recorded: list[Matched]) -> Costed:
    """What is to be replaced where no edit can be written: the text may tell only a part of it, as where a
    product is made on one of two ways."""
    more = (one for one in recorded if formula.place in one.places and one.step_ms > formula.step_ms)
    return next(more, formula)


def _options(formula: Formula[Attention], recorded: list[Matched]) -> list[str]:
    """What the call is tried with: a mask that depends on a condition is none where the step had none, and so
    is dropout with a rate of 0, which makes no operator."""
    found = words(formula.found, formula.flow)
    ran = [one.match.words for one in recorded if formula.place in one.places]
    seen = {word for one in ran for word in one}
    masked, dropped = not ran or "mask" in seen, not ran or "dropout" in seen
    return [one for one in found if (dropped if one == "dropout" else masked)]


def _has_rank(context: Context, formula: Formula[Attention]) -> bool:
    """Whether a softmax over a dimension counted from the front is over the last one, as the record shows."""
    rank, graph = formula.found.rank, graph_around(context.profile.facts.dataflow)
    nodes = [one for place in formula.places for one in graph.at(place)] if graph is not None else []
    shapes = [graph.shape(one.outputs[0]) for one in nodes if graph is not None and one.name in SOFTMAX]
    return not rank or (bool(shapes) and all(len(shape) == rank for shape in shapes))


def _in_frameworks(context: Context, rule: str) -> Iterator[Draft]:
    """Attention that a framework computes step by step: in a function of its own, known by its name, or as a
    call of the user's asks for it."""
    found = list(in_frameworks(context, rule))
    recorded = {one.cost.place: one for one in of_libraries(context)} if found else {}
    for cost, spent in found:
        place, share = cost.place, min(1.0, spent / cost.step_ms)
        one = recorded.get(place)
        yield context.draft(
            place,
            f"The model's attention is written out{_REST[:-1]}: {{spent}} of the step ({{share}}).",
            context.spent(_METRIC, spent),
            cost_ms=spent,
            change=one.replaced(share) if one is not None else Fuse((place,), shares=(share,)),
            fixes=['choose fused attention where the model is made, as with `attn_implementation="sdpa"`'],
        )


def _asked_for(context: Context) -> Iterator[Draft]:
    """Attention that a framework's switch has computed step by step, which the operators of a step show."""
    for one in asked_for(context):
        if not context.matters(one.spent_ms):
            continue
        place, spent = one.cost.place, one.spent_ms
        yield context.draft(
            place,
            f"The model's attention is written out{_REST[:-1]}: {{spent}} of the step ({{share}}).",
            context.spent(_METRIC, spent),
            cost_ms=spent,
            saving_ms=spent - one.fused_ms,
            change=one.replaced(min(1.0, spent / one.cost.device_ms)),
            fixes=["leave out the call that switches fused attention off"],
        )


def without_weights(context: Context, place: tuple[str, int]) -> Fix:
    """`need_weights=False` for the call at ``place``. Raises Refused where that is not one call whose second
    result is plainly dropped."""
    source = context.source(place[0])
    calls = [call for call in source.at(place[1], cst.Call) if _drops_the_second(source, call)]
    if len(calls) != 1:
        raise Refused("pass `need_weights=False` where the module is called, if nothing keeps the weights")
    (call,) = calls
    if source.argument(call, "need_weights", _POSITION) is not None:
        raise Refused("`need_weights` is passed already: let it be False there")
    edits = Edits(source).set_argument(call, "need_weights", "False")
    return edits.fix("Leave out the attention's weights (need_weights=False)", "unsafe")


def _drops_the_second(source: Source, call: cst.Call) -> bool:
    """``h, _ = attention(…)`` or ``attention(…)[0]``."""
    parent = source.parent(call)
    if isinstance(parent, cst.Subscript):
        return parent.value is call and source.code(parent).endswith("[0]")
    target = only_target(parent)
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return len(elements) == 2 and source.code(elements[1].value) == "_"
