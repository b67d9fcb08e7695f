"""Gradients are filled with zeros instead of reset to None.

## What it does

Finds `zero_grad(set_to_none=False)`, loops over `grad.zero_()`, and `torch._foreach_zero_` of a list of
gradients that take a measurable part of the step. The fix resets the gradients to None.

## Why is this slow

Filling writes every gradient once, and the next backward pass reads the zeros and adds to them. If the
gradient is None, the backward pass only stores its result.

## Example

```python
for batch in loader:
    optimizer.zero_grad(set_to_none=False)
    #^ found; cost step_ms=3 device_ms=3; op aten::zero_ count=200 device_ms=3
    loss = model(batch)  #> cost device_ms=40
    loss.backward()
```

## Use instead

```python
for batch in loader:
    optimizer.zero_grad()
    loss = model(batch)
    loss.backward()
```

## Example

```python
for batch in loader:
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()  #> found; cost step_ms=3 device_ms=3; op aten::zero_ count=200 device_ms=3
    loss = model(batch)  #> cost device_ms=40
```

## Use instead

```python
for batch in loader:
    for p in model.parameters():
        if p.grad is not None:
            p.grad = None
    loss = model(batch)
```

## Example

The flag is written somewhere else:

```python
CLEARING = {"set_to_none": False}  #> found
for batch in loader:
    optimizer.zero_grad(**CLEARING)
    #^ cost step_ms=3 device_ms=3; op aten::_foreach_zero_ count=1 device_ms=3
    loss = model(batch)  #> cost device_ms=40
    loss.backward()
```

## Use instead

```python
CLEARING = {"set_to_none": True}
for batch in loader:
    optimizer.zero_grad(**CLEARING)
    loss = model(batch)
    loss.backward()
```

## Example

A list of gradients that the script fills itself:

```python
import torch

for batch in loader:
    torch._foreach_zero_([p.grad for p in model.parameters() if p.grad is not None])
    #^ found; cost step_ms=3 cpu_ms=3; op aten::_foreach_zero_ count=1 cpu_ms=3
    loss = model(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch

for batch in loader:
    for p in model.parameters(): p.grad = None
    loss = model(batch)
    loss.backward()
    optimizer.step()
```

## Fix safety

Unsafe: the gradients have the same values, but `p.grad` is None until the next backward pass, which
code that reads it must expect. The optimizer skips a parameter without a gradient; with zeros, weight
decay and momentum would still change it.

## References

- [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.change import Scale, Together
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import NOT_LITERAL, Context, Draft, Edits, Refused, Rule, Source, count, ms
from warpline.rulekit.flags import turned
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.origins import Origin, argument_origin, written
from warpline.rulekit.saving import forward_share, less_device_time
from warpline.wire.sites import Optimizer

_FILLS = {"aten::zero_", "aten::fill_", "aten::_foreach_zero_"}


class ZeroedGradients(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for cost in context.profile.lines:
            fills = [op for op in cost.ops if op.name in _FILLS and op.outer] or [
                op for op in cost.ops if op.name in _FILLS
            ]
            if not fills:
                continue
            source = context.source(cost.file)
            call = _clearing(source, cost.line)
            flag = _flag(context, source, call, fills)
            if call is None and flag is None:
                continue
            added = _added(context, cost.place)
            adding = {"added": ms("adding gradients to zeros", sum(added.values()))} if added else {}
            on_gpu, on_cpu = costs.value("gradients-unset"), costs.value("gradients-unset-cpu")
            left = on_gpu if context.on_gpu else on_cpu
            share = forward_share(cost, lambda op: op.name in _FILLS)  # the step may be on the same line
            spent = share * cost.step_ms
            yield context.draft(
                flag.place if flag is not None else cost.place,
                "Gradients are filled with zeros: {calls} calls a step, which take {spent} ({share})"
                + (", and {added} when" if added else ". Then")
                + " the backward pass adds to the zeros.",
                {
                    "calls": count("fills", round(sum(op.count for op in fills)), "per step"),
                    **context.spent("zeroing gradients", spent),
                    **adding,
                },
                cause=cost.place,
                cost_ms=spent + sum(added.values()),
                change=Together(
                    (
                        Scale((cost.place,), device=1 - share, host=1 - share * (1 - left), assumed=True),
                        *(less_device_time([line], each) for line, each in added.items()),
                    )
                ),
                fixes=[partial(_fix, source, call, flag)],
            )


def _added(context: Context, place: tuple[str, int]) -> dict[LineCost, float]:
    """Time that the backward pass takes at each line to add gradients to what `.grad` holds: sums of two
    tensors of a parameter's shape, as many a step as there are parameters of that shape. Only parameters of
    the optimizer that is used at ``place``; of all, where none is."""
    optimizers = context.sites(Optimizer.KIND)
    parameters = parameter_shapes([one for one in optimizers if place in one.uses] or optimizers)
    sums = [
        (cost, op)
        for cost in context.profile.lines
        for op in cost.ops
        if op.name == "aten::add_" and op.phase == "backward" and op.shapes[:1] == op.shapes[1:2]
    ]
    calls: dict[tuple[int, ...], float] = {}
    for _, op in sums:
        calls[op.shapes[0]] = calls.get(op.shapes[0], 0.0) + op.count
    found: dict[LineCost, float] = {}
    for cost, op in sums:
        own = min(1.0, parameters.get(op.shapes[0], 0) / calls[op.shapes[0]])
        if own * op.device_ms > 0:
            found[cost] = found.get(cost, 0.0) + own * op.device_ms
    return found


def _clearing(source: Source, line: int) -> cst.Call | None:
    """``….zero_grad(set_to_none=…)``, also in a mapping that is unpacked, or ``….grad.zero_()``."""
    call = source.call(line, "zero_grad")
    if call is not None and (source.argument(call, "set_to_none", 0) is not None or source.unpacked(call)):
        return call
    for found in source.calls(line, "zero_", "fill_"):
        if isinstance(found.func, cst.Attribute) and _gradient(found) is not None:
            return found
    for found in source.calls(line, "_foreach_zero_"):
        if _listed(source, found) is not None:
            return found
    return None


def _listed(source: Source, call: cst.Call) -> cst.ListComp | None:
    """``[p.grad for p in …]``, which ``_foreach_zero_`` is given, or which is what its function calls so."""
    given = call.args[0].value if call.args else None
    if isinstance(given, cst.Name):
        held = source.assigned(given.value, within=source.scope(call))
        given = held[0] if len(held) == 1 else None
    if not isinstance(given, cst.ListComp):
        return None
    taken = given.elt
    return given if isinstance(taken, cst.Attribute) and taken.attr.value == "grad" else None


def _flag(context: Context, source: Source, call: cst.Call | None, fills: list[Op]) -> Origin | None:
    """The ``False`` that is passed as ``set_to_none`` but not written at the call, which may have any name:
    little else than optimizers fills whole lists of tensors."""
    if call is None or source.is_named(call.func, "_foreach_zero_"):
        lists = call is None and any(op.name == "aten::_foreach_zero_" for op in fills)
        found = written(context, "set_to_none") if lists else None
    elif not source.is_named(call.func, "zero_grad"):
        return None
    else:
        found = argument_origin(context, source, call, "set_to_none", 0) or written(context, "set_to_none")
    if found is None or found.kind in ("literal", "unknown"):
        return None
    return found if found.source.literal(found.node) is False else None


def _gradient(call: cst.Call) -> cst.BaseExpression | None:
    """``p.grad`` of ``p.grad.zero_()``, ``p.grad.data.zero_()`` and ``p.grad.detach_().zero_()``."""
    node: cst.CSTNode = call.func
    while isinstance(node, (cst.Attribute, cst.Call)):
        if isinstance(node, cst.Attribute) and node.attr.value == "grad":
            return node
        node = node.value if isinstance(node, cst.Attribute) else node.func
    return None


def _fix(source: Source, call: cst.Call | None, flag: Origin | None) -> Fix:
    edits = Edits(source)
    if flag is not None:
        edits = turned(flag)
    elif call is None:
        raise Refused("pass `set_to_none=True`")
    elif source.is_named(call.func, "zero_grad"):
        given = source.argument(call, "set_to_none", 0)
        value = source.passed(call, "set_to_none", 0, NOT_LITERAL)
        if value is NOT_LITERAL:
            raise Refused("another part of the code decides whether they are reset to None")
        if value is True:
            raise Refused("the code already does this")
        if given is not None and given.keyword is not None:
            edits.remove_argument(call, "set_to_none")
        else:
            edits.set_argument(call, "set_to_none", "True", 0)
    elif (listed := _listed(source, call)) is not None:
        edits.replace(call, _unset(source, call, listed))
    else:
        gradient, statement = _gradient(call), source.statement(call)
        if gradient is None or statement is None or source.code(statement).strip() != source.code(call):
            raise Refused("the call is part of a larger expression")
        edits.replace(call, f"{source.code(gradient)} = None")
    return edits.fix("Reset gradients to None", "unsafe")


def _unset(source: Source, call: cst.Call, listed: cst.ListComp) -> str:
    """A loop that sets what is ``listed`` to None, as one statement. Raises Refused."""
    by_hand = "set each `.grad` to None instead"
    loop, taken = listed.for_in, cst.ensure_type(listed.elt, cst.Attribute).value
    statement = source.statement(call)
    name = loop.target.value if isinstance(loop.target, cst.Name) and loop.inner_for_in is None else ""
    alone = statement is not None and source.code(statement).strip() == source.code(call)
    if not name or source.code(taken) != name or not alone:
        raise Refused(by_hand)
    if any(source.code(one.test) != f"{name}.grad is not None" for one in loop.ifs):
        raise Refused(by_hand)
    if not all(source.inside(one, listed) for one in source.uses(name, source.scope(call))):
        raise Refused(by_hand)
    return f"for {name} in {source.code(loop.iter)}: {name}.grad = None"
