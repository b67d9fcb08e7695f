"""An activation function is written out op by op instead of as one fused call.

## What it does

Finds GELU (both forms), SiLU, Mish, hard swish, ELU, leaky ReLU, softplus, sigmoid, tanh, softmax and
its logarithm written with elementary functions, when their lines take a measurable part of the step. The fix
calls the fused function. If the operators of a step were recorded, a function is recognized by its values,
however it is written. If it cannot be edited, the finding says why. In a `torch.autograd.Function` it is
found with the backward pass, where the function is applied. That is edited if the backward pass gives back
the derivative of the fused function. A GELU that transformers writes out (`gelu_new`, the default of GPT-2,
`gelu_fast`, `gelu_python`) is found where the model's configuration is made, which chooses it.

## Why is this slow

Each elementary operation reads a whole tensor and writes one, and autograd stores the operands. The
backward pass does the same again. A fused kernel reads once and writes once.

## Example

```python
import torch


def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
    #^ found; cost device_ms=9
```

## Use instead

```python
import torch


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")
```

## Example

```python
import torch
import torch.nn.functional as F


class Swish(torch.nn.Module):
    def forward(self, x):
        gate = torch.sigmoid(x)  #> cost device_ms=3
        return x * gate  #> found; cost device_ms=3
```

## Use instead

```python
import torch
import torch.nn.functional as F


class Swish(torch.nn.Module):
    def forward(self, x):
        return F.silu(x)
```

## Example

Without a fused call nothing is edited, and the finding says why:

```python
import torch

def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)  #> found; cost device_ms=9
```

## Use instead

Nothing is edited: this is an approximation of GELU that torch has no call for.

## Fix safety

Unsafe: the same function, rounded differently (about 1e-6 of the value in float32). Softplus becomes
the identity above its threshold, and softmax subtracts the maximum first: both are more exact.

## References

- [Activation functions](https://docs.pytorch.org/docs/stable/nn.functional.html#non-linear-activation-functions)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from warpline.model.change import Fuse
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule
from warpline.rulekit.applied import call_where_applied
from warpline.rulekit.formulas.activation import Activation, activation
from warpline.rulekit.formulas.attention import Attention, attention
from warpline.rulekit.formulas.loss import Loss, loss
from warpline.rulekit.graph import ACTIVATION, ATTENTION, LOSS, by_hand, matched, without_formulas
from warpline.rulekit.library_functions import in_frameworks
from warpline.rulekit.terms import Rewrite, Term, formulas
from warpline.rulekit.written_out import written_out

_METRIC = "hand-written activation"
#: In all forms of GELU, once.
_CURVES = ("aten::tanh", "aten::erf")
#: Tensors that a backward pass moves, to those of a forward pass.
_BACKWARD = 3 / 2
_REST = ". One fused kernel forward and one backward do the same."


class HandWrittenActivation(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        told = [(one, one.found) for one in formulas(context, _whole) if isinstance(one.found, Activation)]
        recorded = matched(context, ACTIVATION)
        wholes = {place for one in matched(context, ATTENTION, LOSS) for place in one.places}
        wholes -= {place for one in recorded for place in one.places}
        for formula, found in told:
            if wholes.intersection(formula.places):
                continue  # it is a part of that formula
            what = (_METRIC, found.kind, _REST)
            change = formula.replaced(_kind(found))
            fix = partial(_fix, found, formula.rewrite)
            yield written_out(context, formula, formula.place, what, change, [fix])
        for one in without_formulas(recorded, [one for one, _ in told]):
            applied = bool(one.applied and one.match.call)
            what = (_METRIC, one.match.kind, _REST + ("" if applied else by_hand(one)))
            fixes = [partial(call_where_applied, context, one)] if applied else []
            yield written_out(context, one, one.place, what, one.replaced(one.match.name), fixes)
        yield from _in_frameworks(context, self.name)


def _in_frameworks(context: Context, rule: str) -> Iterator[Draft]:
    """A GELU that a framework computes by several operators, in a function that is known by its name."""
    for cost, spent in in_frameworks(context, rule):
        share, left = min(1.0, spent / cost.step_ms), _fused_ms(cost, spent)
        yield context.draft(
            cost.place,
            f"The model's GELU is written out op by op, which takes {{spent}} a step ({{share}}){_REST}",
            context.spent(_METRIC, spent),
            cost_ms=spent,
            saving_ms=spent - left,
            change=Fuse((cost.place,), keep=left / spent, shares=(share,)),
            fixes=["choose the fused one where the model is made, as with `gelu_pytorch_tanh`"],
        )


def _fused_ms(cost: LineCost, spent: float) -> float:
    """What one kernel takes in each phase: as long as that of the curve, which also reads and writes the
    whole tensor once. Backward, it reads the gradient as well."""
    curves = [op for op in cost.ops if op.name in _CURVES and op.phase != "backward"]
    backward = any(op.phase == "backward" for op in cost.ops)
    times = {op.phase: 1.0 + (_BACKWARD if op.phase == "forward" and backward else 0.0) for op in curves}
    left = sum(op.device_ms * times[op.phase] for op in curves)
    return min(left, spent) if curves else spent


def _whole(term: Term) -> Attention | Loss | Activation | None:
    """A softmax inside attention and a sigmoid inside a loss are parts of those."""
    return attention(term) or loss(term) or activation(term)


def _kind(found: Activation) -> str:
    """The name of the call, with what it is told: "gelu_tanh"."""
    name = found.call.rpartition(".")[2]
    return f"{name}_tanh" if any("tanh" in option for option in found.options) else name


def _fix(found: Activation, rewrite: Rewrite) -> Fix:
    if not found.call:
        raise Refused("this is an approximation of GELU that torch has no call for")
    return rewrite.to_call(found.call, [rewrite.spell(found.input), *map(rewrite.number, found.options)])
