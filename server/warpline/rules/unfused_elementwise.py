"""A function is made of many small passes over the same tensors.

## What it does

Finds functions whose elementwise and reducing kernels together take a measurable part of the step
and are no known formula (those have rules of their own), and compiles them.

## Why is this slow

An elementwise kernel reads whole tensors from memory, does an operation or two on each number and
writes a tensor back. Ten in a row move ten times the bytes that one kernel doing all of it would.

## Example

```python
import torch


def rotate(q, cos, sin):
    half = q.shape[-1] // 2
    first, second = q[..., :half], q[..., half:]
    turned = torch.cat([-second, first], dim=-1)
    #^ found; cost device_ms=3; kernel CatArrayBatchedCopy count=24 device_ms=2
    #^ kernel vectorized_elementwise_kernel count=24 device_ms=1
    return q * cos + turned * sin
    #^ cost device_ms=4; kernel vectorized_elementwise_kernel count=72 device_ms=4
```

## Use instead

```python
import torch


@torch.compile
def rotate(q, cos, sin):
    half = q.shape[-1] // 2
    first, second = q[..., :half], q[..., half:]
    turned = torch.cat([-second, first], dim=-1)
    return q * cos + turned * sin
```

## Near misses

One elementwise kernel cannot be fused with itself:

```python
def add(x, y):
    return x + y  #> cost device_ms=9; kernel vectorized_elementwise_kernel count=1 device_ms=9
```

A product is no elementwise kernel:

```python
def project(x, w):
    y = x @ w  #> cost device_ms=9; kernel ampere_gemm count=1 device_ms=9
    return y @ w  #> cost device_ms=9; kernel ampere_gemm count=1 device_ms=9
```

Compiled already:

```python
import torch

@torch.compile
def rotate(q, cos, sin):
    a = q * cos  #> cost device_ms=9; kernel vectorized_elementwise_kernel count=5 device_ms=9
    return a + sin  #> cost device_ms=9; kernel vectorized_elementwise_kernel count=5 device_ms=9
```

It takes next to nothing:

```python
def rotate(q, cos, sin):
    return q * cos + q * sin
    #^ cost device_ms=0.01; kernel vectorized_elementwise_kernel count=3 device_ms=0.01

def rest(x):
    return x @ x  #> cost device_ms=50
```

## Fix safety

Unsafe: compiled code rounds differently (about 1e-6 of the value in float32). The first call takes
long, and so does every new shape.

## References

- [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Fuse
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, ms, percent
from warpline.rulekit.formulas.activation import activation
from warpline.rulekit.formulas.attention import attention
from warpline.rulekit.formulas.loss import loss
from warpline.rulekit.formulas.norm import norm
from warpline.rulekit.kernels import is_pointwise
from warpline.rulekit.terms import Flow, Term, formulas, function_at


class UnfusedElementwise(Rule):
    area = "fusion"
    severity = "information"
    needs_gpu = True

    def find(self, context: Context) -> Iterator[Draft]:
        told = {place for formula in formulas(context, _known) for place in formula.places}
        for (source, function), costs in _by_function(context, told).items():
            kernels = [kernel for cost in costs for kernel in cost.kernels if is_pointwise(kernel.name)]
            spent = min(sum(kernel.device_ms for kernel in kernels), sum(cost.step_ms for cost in costs))
            calls = sum(kernel.count for kernel in kernels if kernel.phase == "forward")
            runs = max(cost.calls for cost in costs) or min((kernel.count for kernel in kernels), default=1.0)
            # At least three kernels a call of the function: fewer are seldom worth compiling for.
            if not context.matters(spent) or calls < 3 * min(runs, calls) or _is_compiled(source, function):
                continue
            # The function's own line has to be named where its work stands.
            hottest = max(costs, key=lambda cost: cost.step_ms)
            first = min(costs, key=lambda cost: cost.line)
            widest = max(kernel.device_ms for kernel in kernels)
            yield context.draft(
                (source.path, first.line),
                (hottest.file, hottest.line),
                f"`{function.name.value}` makes {{calls}} passes over its tensors, elementwise or reducing: "
                "{spent}, {share}. Compiled they become a few.",
                {
                    "calls": count("elementwise kernels", round(calls), "per step"),
                    "spent": ms("elementwise kernels", spent),
                    "share": percent("elementwise kernels", context.share(spent)),
                },
                cost_ms=spent,
                saving_ms=max(0.0, spent - widest),
                change=Fuse(tuple((cost.file, cost.line) for cost in costs)),
                fixes=[partial(_fix, source, function)],
            )


def _known(flow: Flow, term: Term) -> object | None:
    """A formula that another rule speaks of."""
    return norm(flow, term) or attention(flow, term) or activation(flow, term) or loss(flow, term)


def _by_function(
    context: Context, told: set[tuple[str, int]]
) -> dict[tuple[Source, cst.FunctionDef], list[LineCost]]:
    found: dict[tuple[Source, cst.FunctionDef], list[LineCost]] = {}
    for cost in context.profile.lines:
        pointwise = any(is_pointwise(kernel.name) for kernel in cost.kernels)
        if not pointwise or cost.group or (cost.file, cost.line) in told:
            continue
        source = context.source(cost.file)
        function = function_at(source, cost.line) if source is not None else None
        if source is not None and function is not None and not source.call(cost.line, "step", "backward"):
            found.setdefault((source, function), []).append(cost)
    return found


def _is_compiled(source: Source, function: cst.FunctionDef) -> bool:
    return any("compile" in source.code(item.decorator) for item in function.decorators)


def _fix(source: Source, function: cst.FunctionDef) -> Fix:
    if function.decorators:
        raise Refused("the function is decorated already")
    if function.asynchronous is not None or source.enclosing(function, cst.FunctionDef) is not None:
        raise Refused("the function is made anew each time it is reached")
    edits = Edits(source)
    name = edits.add_import("torch.compile", "import torch")
    edits.insert_before(function, f"@{name}")
    return edits.fix(f"Compile {function.name.value}", "unsafe")
