"""Evaluation records gradients, but no backward pass follows.

## What it does

Finds measured steps that record gradients and have no backward pass, in a script without optimizer steps. In
a training step, it finds parts whose graph the backward pass never visits (a teacher whose result is
detached, a metric); for parts that it visits for nothing, see `wasted-gradient`. The finding is at the
function or the loop that the edit puts into inference mode, or at the call of that part. Nothing is reported
if no tensor requires gradients, or if CUDA graphs replayed much of the step.

## Why is this slow

Recording keeps every activation in memory, and the host creates a graph node for each operation.
`torch.inference_mode()` avoids both, and the tracking of views and versions too.

## Example

```python
#> flags grad_enabled_in_step=true
import torch


def evaluate(model, loader):  #> found
    right = 0
    for images, labels in loader:
        scores = model(images)
        #^ cost cpu_ms=8 device_ms=5; op aten::linear count=40 cpu_ms=6 device_ms=5
        right += (scores.argmax(1) == labels).sum()
    return right
```

## Use instead

```python
import torch


@torch.inference_mode()
def evaluate(model, loader):
    right = 0
    for images, labels in loader:
        scores = model(images)
        right += (scores.argmax(1) == labels).sum()
    return right
```

## Example

```python
#> flags grad_enabled_in_step=true
import torch

model.eval()
for images in loader:  #> found
    scores = model(images)  #> cost cpu_ms=8 device_ms=5; op aten::linear count=40 cpu_ms=6 device_ms=5
    save(scores)
```

## Use instead

```python
import torch

model.eval()
with torch.inference_mode():
    for images in loader:
        scores = model(images)
        save(scores)
```

## Example

```python
#> flags grad_enabled_in_step=true
import torch

class Distiller:
    def loss(self, images):
        wanted = self.teacher(images).detach()
        #^ found; cost step_ms=9 device_ms=9 cpu_ms=8 nodes=60 unused_nodes=60
        #^ op aten::linear count=20 cpu_ms=8
        got = self.student(images)
        #^ cost step_ms=9 cpu_ms=8 backward_ms=4 nodes=30; op aten::linear count=10 cpu_ms=4
        return (wanted - got).square().mean()
```

## Use instead

```python
import torch

class Distiller:
    def loss(self, images):
        with torch.no_grad():
            wanted = self.teacher(images).detach()
        got = self.student(images)
        return (wanted - got).square().mean()
```

## Fix safety

Unsafe: values stay the same, but tensors made in inference mode cannot be used by a later backward pass.

## References

- [Inference mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit import Context, Draft, Rule, count, ms, percent
from warpline.rulekit.calling import (
    MOSTLY,
    Function,
    below,
    callers,
    evaluated_at,
    function_of,
    part_called,
    records_at,
)
from warpline.rulekit.ungraphed import in_inference_mode, only_draws, without_graph
from warpline.syntax.source import Source

#: A metric of a few operators is no part of a model.
LEAST_NODES = 8


class GradInEval(Rule):
    area = "waiting"

    def find(self, context: Context) -> Iterator[Draft]:
        lines = context.profile.lines
        if not context.profile.facts.flags.grad_enabled_in_step:
            return
        replayed_ms = context.profile.unattributed.device_ms  # no operators, so the pass is unknown
        if not context.profile.totals.get("autograd_nodes", 1.0) or context.matters(replayed_ms):
            return
        if any(map(_goes_back, lines)):
            yield from _never_visited(context)
            return
        forward = [cost for cost in lines if cost.ops]
        host = sum(op.cpu_ms for cost in forward for op in cost.ops if op.outer)
        if not context.matters(host):
            return
        hottest = max(forward, key=lambda cost: sum(op.cpu_ms for op in cost.ops if op.outer))
        calling = records_at(context) or hottest
        at = calling.place
        place = evaluated_at(context, at)
        if _trains(context, place):
            context.note(
                "the script trains, but the captured steps contain no backward pass: capture more steps"
            )
            return
        yield context.draft(
            place[0].place(place[1]) if place is not None else at,
            "Gradients are recorded, but no backward pass follows. The recording operators take "
            "{host} of host time a step ({share}).",
            {"host": ms("host time in operators", host), "share": percent("host time", context.share(host))},
            cause=hottest.place,
            cost_ms=host,
            saving_ms=0.0,  # how much of it is the recording is not measured
            fixes=[partial(in_inference_mode, place)],
        )


def _goes_back(cost: LineCost) -> bool:
    """Whether a backward pass visits what the line records. That of a derivative that is differentiated again
    (`torch.func.grad`) counts as forward work, and is seen by its nodes only."""
    visited = cost.nodes > cost.unused_nodes
    return visited or cost.backward_ms > 0 or any(op.phase == "backward" for op in cost.ops)


def _never_visited(context: Context) -> Iterator[Draft]:
    """Parts of a training step whose graph is recorded, and which the backward pass never visits."""
    own = [cost for cost in context.profile.lines if _is_unused(cost)]
    inside = {function for cost in own for function in cost.called}
    parts: dict[Function, list[LineCost]] = {}
    for cost in own:
        callers_of = callers(context, function_of(cost))
        shared = _is_shared(cost)
        if shared and any(
            _is_unused(one) and not _is_shared(one) for one in (*callers_of, *below(context, cost))
        ):
            continue  # a policy that acts and is trained: the finding is at the call that only acts
        outside = [one for one in callers_of if not _is_unused(one) or _is_shared(one) > shared]
        if function_of(cost) not in inside or outside:
            parts.setdefault(function_of(cost), []).append(cost)
    for costs in parts.values():
        host = sum(_host_ms(context, cost) for cost in costs)
        if not context.matters(host):
            continue
        place = max(costs, key=lambda cost: cost.total_unused_nodes)
        if not _is_shared(place):
            place = part_called(context, place, lambda cost: cost.total_unused_nodes)
        if only_draws(context.source(place.file), place.line):
            continue
        hottest = max(below(context, place), key=lambda cost: cost.unused_nodes)
        nodes = round(sum(cost.total_unused_nodes for cost in costs))
        yield context.draft(
            place.place,
            "Each step records {nodes} autograd nodes here that no backward pass visits. Their "
            "tensors stay in memory, and the operators take {host} of host time ({share}).",
            {
                "nodes": count("autograd nodes", nodes, "per step"),
                "host": ms("host time in operators", host),
                "share": percent("host time", context.share(host)),
            },
            cause=hottest.place,
            cost_ms=host,
            saving_ms=0.0,  # how much of it is the recording is not measured
            fixes=[
                "put only the calls that are not trained under `torch.no_grad()`: other calls of this line "
                "are"
                if _is_shared(place)
                else partial(without_graph, context, place.place)
            ],
        )


def _is_shared(cost: LineCost) -> bool:
    """Whether a backward pass visits other nodes of the same line, from this call or another."""
    return cost.total_unused_nodes < cost.total_nodes


def _is_unused(cost: LineCost) -> bool:
    return cost.total_unused_nodes >= max(LEAST_NODES, MOSTLY * cost.total_nodes)


def _host_ms(context: Context, cost: LineCost) -> float:
    """Host time of the operators below a line; of lines that others call as well, by the nodes recorded."""
    lines = below(context, cost)
    nodes = sum(line.nodes for line in lines)
    host = sum(op.cpu_ms for line in lines for op in line.ops if op.outer and op.phase == "forward")
    return host * min(1.0, cost.total_nodes / nodes) if nodes else host


def _trains(context: Context, place: tuple[Source, cst.FunctionDef | cst.For | cst.While] | None) -> bool:
    """Whether a backward pass comes later than the captured steps, as after the rollout of a policy."""
    code = place[0].code(place[1]) if place is not None else ""
    return "backward(" in code or any(site.uses for site in context.sites("optimizer"))
