"""A Python loop updates parameters one tensor at a time.

## What it does

Finds loops that run the same few elementwise operations on one parameter after the other, outside of
autograd: a hand-written average of the weights (EMA), optimizer or gradient clipping.

## Why is this slow

Each parameter needs several launches, and each launch takes the host tens of microseconds, whatever the
size. torch has these operations for a whole list of tensors: the same arithmetic with a few launches.

## Example

```python
import torch

@torch.no_grad()
def follow(mine, theirs, decay):
    for p, q in zip(mine.parameters(), theirs.parameters()):
        p.mul_(decay).add_(q, alpha=1 - decay)
        #^ found; cost step_ms=6 cpu_ms=6 idle_ms=5 device_ms=1 launches=400 calls=200
        #^ op aten::mul_ count=200 cpu_ms=2 device_ms=0.5; op aten::add_ count=200 cpu_ms=2 device_ms=0.5

for images in loader:
    train(student, images)  #> cost device_ms=40 calls=1
    follow(teacher, student, 0.999)  #> cost cpu_ms=0.1 calls=1
```

## Use instead

Build the two lists of tensors once and call `torch._foreach_lerp_(mine, theirs, 1 - decay)`, or use
`torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`. Use `torch.nn.utils.clip_grad_norm_`
for clipping, and an optimizer with `fused=True` for updates.

## Near misses

A loop over layers, which autograd records:

```python
for layer, scale in zip(self.layers, self.scales):
    x = x + layer(x) * scale
    #^ cost step_ms=30 cpu_ms=6 device_ms=30 launches=100 calls=24 nodes=72
    #^ op aten::add count=24 cpu_ms=2; op aten::mul count=24 cpu_ms=2
```

A few tensors:

```python
for p in model.head.parameters():
    p.mul_(0.999)  #> cost step_ms=6 cpu_ms=6 launches=2 calls=2; op aten::mul_ count=2 cpu_ms=2
```

It takes almost no time:

```python
for p in model.parameters():
    p.mul_(0.999)  #> cost cpu_ms=0.02 launches=200 calls=200; op aten::mul_ count=200 cpu_ms=0.02
train(model)  #> cost device_ms=40
```

## Fix safety

Nothing is edited. The operations on lists round like those on single tensors.

## References

- [torch.optim.swa_utils: exponential moving averages](https://docs.pytorch.org/docs/stable/optim.html#putting-it-all-together-ema)
- [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.model.change import FuseOptimizer
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, Source, count, ms, percent

#: Tensors from which on a loop over them is worth a word.
LEAST_TENSORS = 16
_UPDATES = {
    "aten::mul", "aten::mul_", "aten::add", "aten::add_", "aten::sub", "aten::sub_", "aten::lerp",
    "aten::lerp_", "aten::div", "aten::div_", "aten::addcmul_", "aten::addcdiv_", "aten::clamp_",
    "aten::linalg_vector_norm", "aten::norm", "aten::sign", "aten::sqrt", "aten::copy_",
}  # fmt: skip
_HOLDERS = ("parameters(", "param_groups", "state_dict", "buffers(", "params", "grads", "weights")


class ParameterLoop(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        loops: dict[int, tuple[Source, cst.For]] = {}
        costs: dict[int, list[LineCost]] = {}
        for cost in context.profile.lines:
            source = context.source(cost.file) if _updates(cost) else None
            loop = _loop(source, cost.line) if source is not None else None
            if source is not None and loop is not None:
                loops[id(loop)] = source, loop
                costs.setdefault(id(loop), []).append(cost)
        for key, own in costs.items():
            source, loop = loops[key]
            spent = sum(cost.step_ms for cost in own)
            if not context.matters(spent):
                continue
            hottest = max(own, key=lambda cost: cost.step_ms)
            place = (hottest.file, hottest.line)
            calls = sum(op.count for cost in own for op in cost.ops if op.name in _UPDATES and op.outer)
            yield context.draft(
                place,
                place,
                "A Python loop updates {tensors} tensors one by one, with {calls} operations a step. "
                "It takes {spent} ({share}).",
                {
                    "tensors": count("tensors", round(max(cost.calls for cost in own)), "per step"),
                    "calls": count("operations in the loop", round(calls), "per step"),
                    "spent": ms("loop over tensors", spent),
                    "share": percent("loop over tensors", context.share(spent)),
                },
                cost_ms=spent,
                change=FuseOptimizer(tuple((cost.file, cost.line) for cost in own)),
                fixes=[_by_hand],
            )


def _updates(cost: LineCost) -> bool:
    """Whether the line does elementwise arithmetic on many tensors, none of it for a backward pass."""
    done = sum(op.count for op in cost.ops if op.name in _UPDATES and op.phase == "forward" and op.outer)
    return done >= LEAST_TENSORS and cost.calls >= LEAST_TENSORS and not cost.nodes and not cost.backward_ms


def _loop(source: Source, line: int) -> cst.For | None:
    """The loop over parameters around a line of its function."""
    statement = source.statement_at(line)
    for loop in source.loops(statement) if statement is not None else []:
        if isinstance(loop, cst.For) and any(word in source.code(loop.iter) for word in _HOLDERS):
            return loop
    return None


def _by_hand() -> Fix:
    raise Refused(
        "call `torch._foreach_lerp_`, `torch._foreach_mul_` and the like with lists of "
        "tensors, or use `AveragedModel`, `clip_grad_norm_` or one of torch's optimizers"
    )
