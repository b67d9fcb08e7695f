"""Gradients are all-reduced after every backward pass, although several passes are accumulated.

## What it does

Finds `DistributedDataParallel` with several backward passes per optimizer step and a measurable time in
collectives. The fix runs the passes that need no all-reduce under `no_sync()`.

## Why is this slow

Each backward pass all-reduces all gradients. If gradients are accumulated over `n` passes, only the
last all-reduce is needed.

## Example

```python
#> manifest world_size=2; totals exposed_communication_ms=12
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net())  #> site parallel type=DistributedDataParallel
for i, (images, labels) in enumerate(loader):
    loss = criterion(model(images), labels) / 4  #> cost device_ms=40 communication_ms=16 step_ms=52
    loss.backward()  #> found; cost cpu_ms=1 calls=4
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Use instead

```python
from torch.nn.parallel import DistributedDataParallel
import contextlib

model = DistributedDataParallel(Net())
for i, (images, labels) in enumerate(loader):
    with contextlib.nullcontext() if (i + 1) % 4 == 0 else model.no_sync():
        loss = criterion(model(images), labels) / 4
        loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Example

```python
#> manifest world_size=2; totals exposed_communication_ms=12
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net())  #> site parallel type=DistributedDataParallel
for step in range(1000):
    for micro in range(accumulation):
        loss = criterion(model(batch())) / accumulation  #> cost device_ms=40 communication_ms=16 step_ms=52
        loss.backward()  #> found; cost cpu_ms=1 calls=4
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead

```python
from torch.nn.parallel import DistributedDataParallel
import contextlib

model = DistributedDataParallel(Net())
for step in range(1000):
    for micro in range(accumulation):
        with contextlib.nullcontext() if micro == accumulation - 1 else model.no_sync():
            loss = criterion(model(batch())) / accumulation
            loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Example

A loop that may end early is not edited:

```python
#> manifest world_size=2; totals exposed_communication_ms=12
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net())  #> site parallel type=DistributedDataParallel
for micro in range(accumulation):
    loss = criterion(model(batch())) / accumulation  #> cost device_ms=40 communication_ms=16 step_ms=52
    loss.backward()  #> found; cost cpu_ms=1 calls=4
    if loss > limit:
        break
optimizer.step()
```

## Use instead

Nothing is edited: the last pass has to all-reduce the gradients, and it is unknown which pass that is.

## Fix safety

Unsafe: each device first sums its own gradients, so they are rounded in another order.

## References

- [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Scale
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, count
from warpline.rulekit.parallel import exposed_communication, wrapper_name, wrappers
from warpline.rulekit.terms import descend
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.source import Source, is_method
from warpline.wire.run import Site

#: A script that uses one of these decides itself which passes exchange.
SYNC_SWITCHES = ("no_sync", "require_backward_grad_sync", "accelerator.accumulate")


class SyncEveryAccumulationStep(Rule):
    area = "many devices"
    covers = ("exposed-communication",)

    def find(self, context: Context) -> Iterator[Draft]:
        exposed, lines = exposed_communication(context)
        if not context.matters(exposed):
            return
        for site in wrappers(context, "DistributedDataParallel"):
            for step in training_steps(context):
                file, line = step.source.place(step.backward)
                cost = context.cost(file, line)
                passes = round(cost.calls) if cost is not None else 0
                if passes < 2 or any(word in step.source.text for word in SYNC_SWITCHES):
                    continue
                needless = exposed * (passes - 1) / passes
                places = tuple(cost.place for cost in lines)
                yield context.draft(
                    (file, line),
                    "All {passes} backward passes per optimizer step all-reduce the gradients, but only "
                    "the last all-reduce is needed: {spent} of the step ({share}) is communication that "
                    "is not overlapped with compute.",
                    {
                        "passes": count("backward passes per step", passes, "passes"),
                        **context.spent("exposed communication", exposed),
                    },
                    cause=places[0],
                    cost_ms=exposed,
                    saving_ms=needless,
                    change=Scale(places, device=1 - needless / max(context.step_ms, needless)),
                    fixes=[partial(_fix, context, site, step)],
                )
                return


def _fix(context: Context, site: Site, step: TrainingStep) -> Fix:
    source, block = step.source, step.block
    name = wrapper_name(context, site)
    if not name:
        raise Refused("the name of the wrapped model was not found")
    index = next(i for i, entry in enumerate(block) if source.inside(step.backward, entry))
    conditions = (entry for entry in block[index + 1 :] if isinstance(entry, cst.If))
    decision = next((entry for entry in conditions if _calls_step(source, entry)), None)
    if decision is not None and decision.orelse is None:
        last, named = source.code(decision.test), source.nodes(cst.Name, within=decision.test)
    else:
        last, named = _last_round(source, step)
    if step.handed_over:
        raise Refused("a framework runs the backward pass: use its own gradient accumulation")
    if not step.forward:
        raise Refused("the forward pass is not in the same block as the backward pass")
    first = next(i for i, entry in enumerate(block) if entry is step.forward[0])
    wrapped = block[first : index + 1]
    for used in sorted({node.value for node in named}):
        bound = [
            read
            for entry in wrapped
            for read in source.uses(used, entry)
            if isinstance(source.parent(read), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
        ]
        if bound:
            raise Refused(
                f"the optimizer's step depends on `{used}`, which is only known after the forward pass"
            )
    edits = Edits(source)
    null = edits.add_import("contextlib.nullcontext", "import contextlib")
    edits.wrap(wrapped, f"with {null}() if {last} else {name}.no_sync():")
    return edits.fix("All-reduce gradients only before the optimizer steps", "unsafe")


def _last_round(source: Source, step: TrainingStep) -> tuple[str, list[cst.Name]]:
    """The condition of the last round of ``for i in range(n)`` that the optimizer's step follows, and
    the names in it."""
    loop = next(iter(source.loops(step.backward)), None)
    unclear = Refused("no condition or loop was found that marks the last backward pass")
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name) or loop.target.value == "_":
        raise unclear
    rounds = loop.iter
    if not isinstance(rounds, cst.Call) or not source.is_named(rounds.func, "range") or len(rounds.args) != 1:
        raise unclear
    above, number = source.block(loop), rounds.args[0].value
    behind = above[next(i for i, entry in enumerate(above) if entry is loop) + 1 :]
    if not any(_calls_step(source, entry) for entry in behind):
        raise unclear
    if not isinstance(number, (cst.Integer, cst.Name, cst.Attribute)):
        raise unclear
    # A round that ends early, or another number of them, would leave gradients that were never exchanged.
    targets = [source.code(item.target) for item in descend(loop.body, cst.AssignTarget, cst.AugAssign)]
    if source.code(number) in targets or any(descend(loop.body, cst.Break, cst.Continue)):
        raise unclear
    known = source.literal(number)
    end = str(known - 1) if isinstance(known, int) else f"{source.code(number)} - 1"
    return f"{loop.target.value} == {end}", [loop.target, *source.nodes(cst.Name, within=number)]


def _calls_step(source: Source, entry: cst.CSTNode) -> bool:
    return any(is_method(call, "step") for call in source.nodes(cst.Call, within=entry))
