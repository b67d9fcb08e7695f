"""The optimizer updates one parameter after the other instead of all of them in a few kernels.

## What it does

Finds `Adam`, `AdamW`, `SGD` and `Adagrad` that update tensor by tensor and whose `step()` takes a
measurable part of the step. The fix passes `fused=True` where the optimizer is created, or adds it to the
mapping that holds its settings, as an entry of a configuration that a registry builds it from. On a GPU
torch's default works through lists of tensors, a kernel for each operation: it is found where a trial on the
parameters' shapes shows that the fused form saves a measurable part. It also finds
optimizers that have a group for each parameter: they launch their kernels for each group, fused or not. On a
CPU such an optimizer is found where it is fused, and a trial with one group is faster. Last, it finds lines
that make an optimizer for each parameter. Where hooks step these as soon as a gradient is there, to free it,
they are found if a trial shows that one optimizer gains, and memory has room for all gradients.

## Why is this slow

A plain update launches about a dozen small kernels for every parameter tensor: several thousand for a
transformer, each a few microseconds long. The fused form updates many tensors with one kernel, and
reads and writes each number once.

## Example

```python
import torch

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
#^ found; site optimizer type=AdamW fused=None foreach=false parameters=200
for batch in loader:
    loss = model(batch)  #> cost device_ms=40
    loss.backward()
    optimizer.step()
    #^ cost step_ms=20 device_ms=9 idle_ms=11 cpu_ms=20 launches=2400; use optimizer
```

## Use instead

```python
import torch

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
```

## Example

A group for each parameter, so that each kernel has one tensor to work on:

```python
import torch

def configure(net, decay):
    groups = []
    for name, p in net.named_parameters():
        groups.append({"params": [p], "weight_decay": decay if p.ndim > 1 else 0.0})  #> found
    return torch.optim.AdamW(groups, fused=True)
    #^ site optimizer type=AdamW fused=true parameters=200 groups=200

optimizer = configure(net, 0.01)
for batch in loader:
    loss = model(batch)  #> cost device_ms=20
    loss.backward()
    optimizer.step()
    #^ cost step_ms=5 device_ms=2 idle_ms=3 cpu_ms=5 launches=400; use optimizer
    #^ kernel "void at::native::multi_tensor_apply_kernel<int>(int)" count=400 device_ms=2
```

## Use instead

One group for all parameters with the same settings: here two, with and without weight decay.

```python
import torch

def configure(net, decay):
    groups = []
    for name, p in net.named_parameters():
        group = {"params": [p], "weight_decay": decay if p.ndim > 1 else 0.0}
        for other in groups:
            if other == {**group, "params": other["params"]}:
                other["params"] += group["params"]
                break
        else:
            groups.append(group)
    return torch.optim.AdamW(groups, fused=True)

optimizer = configure(net, 0.01)
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
```

## Example

The same on a CPU:

```python
#> device kind=cpu
import torch

def rated(net, lr):
    return [dict(params=p, lr=lr if p.ndim > 1 else lr / 10) for p in net.parameters()]  #> found

optimizer = torch.optim.AdamW(rated(net, 1e-3), fused=True)
#^ site optimizer type=AdamW fused=true parameters=200 groups=200
for batch in loader:
    loss = model(batch)  #> cost device_ms=20
    loss.backward()
    optimizer.step()  #> cost step_ms=9 cpu_ms=9 device_ms=3 launches=800; use optimizer
```

## Use instead

```python
import torch

def rated(net, lr):
    groups = []
    for group in [dict(params=[p], lr=lr if p.ndim > 1 else lr / 10) for p in net.parameters()]:
        for other in groups:
            if other == {**group, "params": other["params"]}:
                other["params"] += group["params"]
                break
        else:
            groups.append(group)
    return groups

optimizer = torch.optim.AdamW(rated(net, 1e-3), fused=True)
for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
```

## Example

An optimizer for each parameter:

```python
import torch

solvers = {name: torch.optim.AdamW([p], lr=1e-3) for name, p in net.named_parameters()}
#^ found; site optimizer type=AdamW parameters=1 groups=1 made=200
for batch in loader:
    loss = model(batch)  #> cost device_ms=20
    loss.backward()
    for solver in solvers.values():
        solver.step()  #> cost step_ms=9 device_ms=2 idle_ms=7 cpu_ms=9 launches=2400 calls=200; use optimizer
```

## Use instead

One optimizer of all parameters: `torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)`.

## Example

A library that steps the optimizer, on a CPU:

```python
#> device kind=cpu
import torch
from trainers import Fit

fit = Fit(net, torch.optim.AdamW(net.parameters(), lr=1e-3))  #> found
#^ site optimizer type=AdamW fused=None foreach=None parameters=60
fit.run(loader)  #> cost step_ms=100 cpu_ms=100 device_ms=97; use optimizer
#^ inside file=/lib/trainers/fit.py line=12 step_ms=30 part=optimizer/AdamW.step
```

## Use instead

```python
import torch
from trainers import Fit

fit = Fit(net, torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True))
fit.run(loader)
```

## Example

An optimizer for each parameter, stepped in the backward pass:

```python
#> device kind=cpu; memory free_bytes=20000000000
import torch

solvers = {p: torch.optim.AdamW([p], lr=1e-3, fused=True) for p in net.parameters()}
#^ found; site optimizer type=AdamW fused=true parameters=1 groups=1 made=200 all_shapes=[[200,256]]

def update(p):
    solvers[p].step()
    #^ cost step_ms=9 device_ms=2 idle_ms=7 cpu_ms=9 launches=600 calls=200; use optimizer
    solvers[p].zero_grad()

for p in net.parameters():
    p.register_post_accumulate_grad_hook(update)
for batch in loader:
    loss = model(batch)  #> cost device_ms=20
    loss.backward()
```

## Use instead

```python
import torch

optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

for batch in loader:
    loss = model(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Fix safety

Unsafe: the same update, rounded in another order (about 1e-7 of the value per step). Saved optimizer
states stay readable. A gradient scaler may pass its scale to the fused form. Fewer groups give the same
numbers, but states that were saved with more do not fit. No edit is offered where the script may
distinguish groups by their numbers, as with `zip(optimizer.param_groups, rates)`. A loop that sets each group
by its own settings, as `group["lr"] *= 0.9`, may stay. PyTorch's fused SGD with momentum raises a TypeError
if a weight gets its first gradient in a later step than the others (seen with 2.13).

One optimizer in place of those that hooks step gives the same numbers, too, but all gradients stay in memory
until it steps. The edit is offered where the hook only steps and clears, nothing else uses the optimizers,
and there is one backward pass.

## References

- [torch.optim: choosing an implementation](https://docs.pytorch.org/docs/stable/optim.html#algorithms)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import libcst as cst

from warpline.model.change import Fuse, FuseOptimizer, Replace, Scale
from warpline.model.costs import value
from warpline.model.profile import LineCost
from warpline.model.report import Evidence, Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, count, size
from warpline.rulekit.frameworks import clipped_in_half
from warpline.rulekit.holders import argument, by_hand, literal_at, made_with
from warpline.rulekit.literals import is_switched_on
from warpline.rulekit.optimizer_groups import same_settings_together
from warpline.rulekit.optimizer_hooks import one_after_backward
from warpline.rulekit.optimizer_step import (
    OPERATIONS,
    apart,
    calls_a_tensor,
    gradient_bytes,
    in_small_groups,
    is_by_name,
    is_step,
    launches_for_lists,
    maker_of,
    making_call,
    set_at,
    settings_taken,
    stands_alone,
    stepped_in_hooks,
    unpacked,
    without_form,
)
from warpline.rulekit.origins import Origin
from warpline.wire.run import Site
from warpline.wire.sites import Optimizer, facts_of

#: Optimizers with a fused form, and the first torch that has it on a GPU and on a CPU.
_FUSED = {"Adam": (2, 4), "AdamW": (2, 4), "SGD": (2, 4), "Adagrad": (2, 7)}
#: The fused form's time, as a share of the plain one's, where it was not tried.
_LEFT = {
    "Adam": value("fused-adam"),
    "AdamW": value("fused-adamw"),
    "SGD": value("fused-sgd"),
    "Adagrad": value("fused-adagrad"),
}
#: On a CPU the gain is not simulated but a bound: below this share of the step it is not reported.
_CPU_PERCENT = 5.0


#: Operators by which an optimizer takes sparse gradients apart.
_SPARSE = re.compile(r"sparse|coalesce|::_(?:values|indices)$")


class PerTensorOptimizer(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        for site in context.sites("optimizer"):
            optimizer = facts_of(Optimizer, site)
            kind, tensors = (optimizer.type or "").rpartition(".")[2], optimizer.parameters
            if kind not in _FUSED or not isinstance(tensors, int):
                continue
            costs = [cost for cost in context.costs(site.uses) if is_step(context, cost)]
            crowded = [cost for cost in costs if not stands_alone(context, cost)]
            if crowded:
                if context.matters(sum(cost.step_ms for cost in crowded)):
                    place = f"{Path(crowded[0].file).name}:{crowded[0].line}"
                    context.note(
                        f"{place} does more than {kind}'s step, so the cost of the step is unknown; put it "
                        "on a line of its own"
                    )
                continue
            if costs and in_small_groups(context, optimizer, costs):
                yield _grouped(context, site, kind, costs)
                continue
            if costs and apart(context, optimizer, costs):
                yield _apart(context, site, kind, costs)
                continue
            if optimizer.fused or tensors < 2:
                continue
            if not costs and not context.on_gpu and not optimizer.foreach:
                yield from _in_a_library(context, site, kind)
                continue
            calls = sum(calls_a_tensor(context, cost) for cost in costs)
            lists = sum(launches_for_lists(cost) for cost in costs) if context.on_gpu else 0.0
            spent = sum(cost.step_ms for cost in costs)
            if not costs or not context.matters(spent):
                continue
            if any(_SPARSE.search(op.name) for cost in costs for op in cost.ops):
                continue  # no fused version takes sparse gradients
            if calls < tensors * OPERATIONS:
                if lists >= OPERATIONS and context.matters(sum(cost.device_ms for cost in costs)):
                    yield _in_lists(context, site, kind, costs, lists)
                continue
            saving = (1 - _LEFT[kind]) * spent
            if not context.on_gpu and context.share(saving) < _CPU_PERCENT:
                continue
            places = tuple(cost.place for cost in costs)
            yield _draft(
                context,
                costs,
                _written_at(context, site, kind),
                f"The optimizer updates {{tensors}} tensors one by one, with {{calls}} "
                f"{'kernels' if context.on_gpu else 'operations'} "
                "a step. It takes {spent} ({share}).",
                tensors,
                {"calls": count("optimizer launches", round(calls), "per step")},
                saving_ms=saving,
                # Without kernels a simulation cannot tell one tensor's operations from another's.
                change=Replace(
                    "optimizer",
                    places,
                    FuseOptimizer(places) if context.on_gpu else Scale(places, _LEFT[kind], _LEFT[kind]),
                    (kind,),
                ),
                fixes=[partial(_fix, context, site, kind)],
            )


def _in_a_library(context: Context, site: Site, kind: str) -> Iterator[Draft]:
    """A finding on the steps that a library takes at lines of the script that do more. On a CPU, torch takes
    one tensor after the other unless it is told otherwise."""
    costs = [cost for cost in context.costs(site.uses) if _stepping_ms(cost, kind)]
    spent = sum(_stepping_ms(cost, kind) for cost in costs)
    saving = (1 - _LEFT[kind]) * spent
    if not context.matters(spent) or context.share(saving) < _CPU_PERCENT:
        return
    places = tuple(cost.place for cost in costs)
    shares = tuple(min(1.0, _stepping_ms(cost, kind) / cost.step_ms) for cost in costs)
    yield _draft(
        context,
        costs,
        _written_at(context, site, kind),
        "The optimizer updates {tensors} tensors one by one. It takes {spent} ({share}).",
        facts_of(Optimizer, site).parameters or 0,
        {},
        spent=spent,
        saving_ms=saving,
        change=Replace("optimizer", places, Fuse(places, keep=_LEFT[kind], shares=shares), (kind,), shares),
        fixes=[partial(_fix, context, site, kind)],
    )


def _stepping_ms(cost: LineCost, kind: str) -> float:
    """Milliseconds a step that a library spends in ``step()`` of ``kind``, below a line of the script."""
    return sum(part.step_ms for part in cost.inside if part.part == f"optimizer/{kind}.step")


def _draft(
    context: Context,
    costs: list[LineCost],
    place: tuple[str, int],
    message: str,
    tensors: int,
    evidence: dict[str, Evidence],
    *,
    spent: float | None = None,
    **more: Any,
) -> Draft:
    """A finding at ``place`` on an optimizer with ``tensors``, which takes ``spent`` at the lines ``costs``:
    by default all that they take."""
    spent = sum(cost.step_ms for cost in costs) if spent is None else spent
    return context.draft(
        place,
        message,
        {
            "tensors": count("parameter tensors", tensors, "tensors"),
            **evidence,
            **context.spent("optimizer step", spent),
        },
        cause=max(costs, key=lambda cost: cost.step_ms).place,
        cost_ms=spent,
        **more,
    )


def _written_at(context: Context, site: Site, kind: str) -> tuple[str, int]:
    """Where the optimizer's form is written, or is to be: the mapping that the call unpacks."""
    held = set_at(site) or unpacked(context, site, kind)
    if held is not None:
        return held.place
    found = without_form(context, site, kind) or settings_taken(context, site, kind)
    return found[0].place(found[1]) if found is not None else site.place


def _grouped(context: Context, site: Site, kind: str, costs: list[LineCost]) -> Draft:
    optimizer, place = facts_of(Optimizer, site), _groups_at(context, site, kind)
    form = "fused" if optimizer.fused else "foreach"
    return _split(
        context,
        place,
        "The optimizer works on one group of parameters after the other, with {launches} "
        f"{'kernels' if context.on_gpu else 'operators'} for "
        "{tensors} tensors. It takes {spent} ({share}). Put parameters with the same settings into one "
        "group.",
        optimizer.parameters or 0,
        costs,
        (kind, "groups", form),
        partial(same_settings_together, context, place),
        {},
        tried=not context.on_gpu,
    )


def _in_lists(context: Context, site: Site, kind: str, costs: list[LineCost], lists: float) -> Draft:
    places = tuple(cost.place for cost in costs)
    return _draft(
        context,
        costs,
        _written_at(context, site, kind),
        "The optimizer updates {tensors} tensors with {lists} kernels a step. Most of these read and write "
        "all of the tensors. It takes {spent} ({share}). The fused one does so once.",
        facts_of(Optimizer, site).parameters or 0,
        {"lists": count("kernels for lists of tensors", round(lists), "per step")},
        change=Replace("optimizer", places, Scale(places), (kind, "foreach")),
        tried=True,
        fixes=[partial(_fix, context, site, kind)],
    )


def _apart(context: Context, site: Site, kind: str, costs: list[LineCost]) -> Draft:
    optimizer = facts_of(Optimizer, site)
    hooks = stepped_in_hooks(context)
    return _split(
        context,
        site.place,
        "Each of {tensors} tensors has an optimizer of its own. They take {spent} ({share}), with {launches} "
        f"{'kernels' if context.on_gpu else 'operators'}."
        + (
            " Hooks step them in the backward pass, and free each gradient. One that steps after it needs "
            "{gradients} for all gradients."
            if hooks
            else ""
        ),
        optimizer.made * (optimizer.parameters or 1),
        costs,
        (kind, "apart", *(["fused"] if optimizer.fused else [])),
        partial(_after_backward, context, site, kind)
        if hooks
        else f"make one {kind} with all of the parameters and `fused=True`, with a group for each set of "
        "settings. Saved states do not fit it",
        {"gradients": size("gradients", gradient_bytes(optimizer))} if hooks else {},
        tried=hooks or not context.on_gpu,
    )


def _after_backward(context: Context, site: Site, kind: str) -> Fix:
    _refuse_unfused(context, kind)
    return one_after_backward(context, site, kind)


def _split(
    context: Context,
    place: tuple[str, int],
    message: str,
    tensors: int,
    costs: list[LineCost],
    words: tuple[str, ...],
    fix: Callable[[], Fix] | str,
    more: dict[str, Evidence],
    *,
    tried: bool,
) -> Draft:
    """A finding of tensors that are updated by themselves although one call would take them all. ``tried``:
    what that gains only a trial tells."""
    places, launches = tuple(cost.place for cost in costs), round(sum(cost.launches for cost in costs))
    return _draft(
        context,
        costs,
        place,
        message,
        tensors,
        {"launches": count("optimizer launches", launches, "per step"), **more},
        change=Replace("optimizer", places, Scale(places), words) if tried else FuseOptimizer(places),
        tried=tried,
        fixes=[fix],
    )


def _groups_at(context: Context, site: Site, kind: str) -> tuple[str, int]:
    source = context.source(site.file)
    by_name = (one for one in source.calls(site.line) if is_by_name(source, one))
    call = making_call(source, site, kind) or next(by_name, None)
    if call is None:
        return site.place
    made_in, maker = maker_of(source, call, "params", context.sources())
    return made_in.place(maker)


def _refuse_unfused(context: Context, kind: str) -> None:
    """Raises Refused where the optimizer has no fused form, or must not have it."""
    if context.torch_version < _FUSED[kind]:
        raise Refused("this version of torch has no fused version of it")
    if is_switched_on(context.sources(), "sparse"):
        raise Refused("no fused version takes the sparse gradients of `sparse=True`")
    if reason := clipped_in_half(context):
        raise Refused(reason)


def _fix(context: Context, site: Site, kind: str) -> Fix:
    _refuse_unfused(context, kind)
    taken, mapping = settings_taken(context, site, kind), without_form(context, site, kind)
    if taken is None:
        raise Refused("the call that creates the optimizer was not found on that line")
    source, call = taken
    present = source.argument(call, "fused")
    if present is not None and source.literal(present.value) not in (False, None):
        raise Refused(f"fused comes from `{source.code(present.value)}`: change it there")
    held, written = unpacked(context, site, kind), set_at(site)
    # The field of a dataclass has a name of its own: its value is changed, and not its name.
    of_field = held is not None and isinstance(held.source.parent(held.node), cst.AnnAssign)
    if held is not None and present is None and not (of_field and written is not None):
        return _in_mapping(held, kind)
    if written is not None and present is None and source.argument(call, "foreach") is None:
        reason = by_hand(written, "foreach")
        if reason:
            raise Refused(reason)
        where, node = literal_at(context, written, False)
        return Edits(where).replace(node, "True").fix("Update lists of tensors (foreach)", "unsafe")
    if mapping is not None and present is None:
        return _into_mapping(context, mapping, kind)
    edits = Edits(source)
    foreach = source.argument(call, "foreach")
    if foreach is not None and present is None:
        edits.replace(foreach, "fused=True")
    elif foreach is not None:
        edits.remove_argument(call, "foreach")
        edits.set_argument(call, "fused", "True")
    else:
        # What the call unpacks had neither, so a keyword beside it is the only one.
        given = [argument(site, name) for name in ("fused", "foreach")]
        lacks = all(one is not None and not one.passed for one in given)
        edits.set_argument(call, "fused", "True", lacks=lacks)
    return edits.fix(f"Use the fused {kind}", "unsafe")


def _into_mapping(context: Context, mapping: tuple[Source, cst.Dict | cst.Call], kind: str) -> Fix:
    """``fused`` as one more entry, where all optimizers that are made of the mapping have such a form."""
    where, display = mapping
    for site in made_with(context, "optimizer", display):
        other = (facts_of(Optimizer, site).type or "").rpartition(".")[2]
        if other not in _FUSED:
            raise Refused(f"{other} takes the same settings, and has no `fused`: pass it to {kind} alone")
    return Edits(where).set_entry(display, "fused", "True").fix(f"Use the fused {kind}", "unsafe")


def _in_mapping(held: Origin, kind: str) -> Fix:
    """``"fused": True`` where ``held`` is an entry of a dict, ``fused=True`` where it is a keyword."""
    entry, edits = held.source.parent(held.node), Edits(held.source)
    if isinstance(entry, cst.DictElement):
        edits.replace(entry, '"fused": True')
    elif isinstance(entry, cst.Arg) and entry.keyword is not None:
        edits.replace(entry, "fused=True")
    else:
        raise Refused(f"the optimizer's form comes from {held.words}: pass `fused` instead")
    return edits.fix(f"Use the fused {kind}", "unsafe")
