"""A Python loop updates parameters one tensor at a time.

## What it does

Finds loops that run the same few elementwise operations on one parameter after the other, outside of
autograd: a hand-written average of the weights (EMA), optimizer or gradient clipping. A function that only
such a loop calls, for each tensor, gets the lists, and returns one if the loop keeps what it returns. Also
such a loop of a framework's (diffusers' `EMAModel`, timm's `ModelEmaV2`), with the setting or the class that
does without it.

## Why is this slow

Each parameter needs several launches, and each launch takes the host tens of microseconds, whatever the
size. torch has these operations for a whole list of tensors: the same arithmetic with a few launches. On a
CPU that saves the time between the operations only. If most of the time is in the arithmetic, a fused
optimizer, which makes an update in one pass over its tensors, saves more: the edit makes torch's Adam or
AdamW where the recorded update is theirs, with the settings that the optimizer is given and a rate that it
had.

## Example

```python
import torch

@torch.no_grad()
def follow(mine, theirs, decay):
    for p, q in zip(mine.parameters(), theirs.parameters()):  #> found
        p.mul_(decay).add_(q, alpha=1 - decay)
        #^ cost step_ms=6 cpu_ms=6 idle_ms=5 device_ms=1 launches=400 calls=200
        #^ op aten::mul_ count=200 cpu_ms=2 device_ms=0.5; op aten::add_ count=200 cpu_ms=2 device_ms=0.5
        #^ node aten.mul_.Tensor args=[%10,0.999] shape=[8]
        #^ node aten.add_.Tensor args=[%0,%11,'{"alpha":0.001}'] shape=[8]
        #^ node aten.mul_.Tensor args=[%12,0.999] shape=[8]
        #^ node aten.add_.Tensor args=[%2,%13,'{"alpha":0.001}'] shape=[8]

for images in loader:
    train(student, images)  #> cost device_ms=40 calls=1
    follow(teacher, student, 0.999)  #> cost cpu_ms=0.1 calls=1
```

## Use instead

```python
import torch

@torch.no_grad()
def follow(mine, theirs, decay):
    ps, qs = [], []
    for p, q in zip(mine.parameters(), theirs.parameters()):
        ps.append(p)
        qs.append(q)
    if ps:
        torch._foreach_mul_(ps, decay)
        torch._foreach_add_(ps, qs, alpha=1 - decay)

for images in loader:
    train(student, images)
    follow(teacher, student, 0.999)
```

Shorter: build the two lists once and call `torch._foreach_lerp_(mine, theirs, 1 - decay)`, or use
`torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`. Use `torch.nn.utils.clip_grad_norm_`
for clipping, and an optimizer with `fused=True` for updates.

## Example

Whole states are averaged and loaded:

```python
import torch

def follow(late, net, rate):
    old = late.state_dict()
    for name, new in net.state_dict().items():  #> found
        old[name] = rate * new + (1 - rate) * old[name]
        #^ cost step_ms=4 cpu_ms=4 device_ms=1 launches=120 calls=40
        #^ op aten::mul count=80 cpu_ms=2; op aten::add count=40 cpu_ms=1
        #^ node aten.mul.Tensor args=[%20,0.1] shape=[8]; node aten.mul.Tensor args=[%30,0.9] shape=[8]
        #^ node aten.add.Tensor args=[%0,%1] shape=[8]
        #^ node aten.mul.Tensor args=[%21,0.1] shape=[8]; node aten.mul.Tensor args=[%31,0.9] shape=[8]
        #^ node aten.add.Tensor args=[%3,%4] shape=[8]
    late.load_state_dict(old)
    #^ cost step_ms=3 cpu_ms=3 device_ms=1 calls=1; op aten::copy_ count=40 cpu_ms=3
    #^ node aten.copy_.default args=[%30,%2] shape=[8] via=module
    #^ node aten.copy_.default args=[%31,%5] shape=[8] via=module

for images in loader:
    train(net, images)  #> cost device_ms=40 calls=1
    follow(late, net, 0.1)  #> cost cpu_ms=0.1 calls=1
```

## Use instead

```python
import torch

def follow(late, net, rate):
    old = late.state_dict()
    olds, news = [], []
    for name, new in net.state_dict().items():
        olds.append(old[name])
        news.append(new)
    if olds:
        torch._foreach_lerp_(olds, news, rate)

for images in loader:
    train(net, images)
    follow(late, net, 0.1)
```

The entries of a state are the network's own tensors. Whole numbers, such as what BatchNorm counts, are
averaged and copied one by one.

## Example

Numbers that are read from each tensor:

```python
#> device kind=cpu
import torch

def watch(model, log):
    for name, p in model.named_parameters():  #> found
        if p.grad is not None:
            length = p.grad.norm()
            #^ cost step_ms=6 cpu_ms=6 device_ms=1 launches=200 calls=200
            #^ op aten::linalg_vector_norm count=200 cpu_ms=4
            #^ node aten.linalg_vector_norm.default args=[%10] shape=[]
            log[name] = length.item()
            #^ cost step_ms=1 cpu_ms=1 calls=200; op aten::item count=200 cpu_ms=1
            #^ node aten._local_scalar_dense.default args=[%0]

for images in loader:
    train(model, images)  #> cost device_ms=40 calls=1
    watch(model, log)  #> cost cpu_ms=0.1 calls=1
```

## Use instead

```python
import torch

def watch(model, log):
    grads, names = [], []
    for name, p in model.named_parameters():
        if p.grad is not None:
            grads.append(p.grad)
            names.append(name)
    if grads:
        lengths = torch._foreach_norm(grads)
        for name, length in zip(names, torch.stack(lengths).tolist()):
            log[name] = length

for images in loader:
    train(model, images)
    watch(model, log)
```

## Example

A number that differs from tensor to tensor, which the operations on lists do not take:

```python
import torch

@torch.no_grad()
def shrink(model):
    for p in model.parameters():  #> found
        p.mul_(1 - 0.1 / p.numel())
        #^ cost step_ms=6 cpu_ms=6 launches=200 calls=200; op aten::mul_ count=200 cpu_ms=6
        #^ node aten.mul_.Tensor args=[%10,0.9] shape=[1]; node aten.mul_.Tensor args=[%12,0.95] shape=[2]

for images in loader:
    train(model, images)  #> cost device_ms=40 calls=1
    shrink(model)  #> cost cpu_ms=0.1 calls=1
```

## Use instead

`torch._foreach_mul_(tensors, factors)` with a list of numbers.

## Fix safety

Unsafe: on a GPU, an operation that multiplies and adds may round otherwise in the last bit. Safe on CPUs, and
where each operation only multiplies, adds or copies; not for an average that is copied (`mine.copy_(d * mine
+ (1 - d) * theirs)`), loaded, or a tensor's new data (`mine.data = ...`), which becomes one
`torch._foreach_lerp_`. It is made in the data that the tensor has, where no statement gives a tensor another
one's: whatever else holds these data sees them change. New tensors, such as `a * b`, are made for all
parameters at once, and numbers of the tensors are added up in another order. On a CPU the edit multiplies
with `torch.tensor(decay)`: else each tensor of the list converts the number by itself, which takes longer
than the product of a small tensor. The recorded step has to show that no round touches what another one
changes, such as a tensor that is in a list twice: else no edit is offered. Torch's Adam rounds otherwise than
one that is written out, and saved states of that one do not fit it.

## References

- [torch.optim.swa_utils: exponential moving averages](https://docs.pytorch.org/docs/stable/optim.html#putting-it-all-together-ema)
- [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import libcst as cst

from warpline.model import costs
from warpline.model.change import Change, FuseOptimizer, RemoveLaunches, Replace, Scale, Together
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, Source, count
from warpline.rulekit.at_once import norms_at_once, read_at_once
from warpline.rulekit.averaged_states import AVERAGE, Loaded, averaged_in_place, loaded
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.foreach_call import lists_at
from warpline.rulekit.graph import graph_around
from warpline.rulekit.library_functions import in_frameworks
from warpline.rulekit.optimizer_step import parameter_shapes
from warpline.rulekit.own_adam import ADVICE, fused_adam
from warpline.rulekit.own_data import own_data
from warpline.rulekit.rounds import LEAST_ROUNDS
from warpline.syntax.source import alone
from warpline.wire.dataflow import DIRECT
from warpline.wire.probing import DATA
from warpline.wire.sites import Optimizer

_UPDATES = {
    "aten::mul", "aten::mul_", "aten::add", "aten::add_", "aten::sub", "aten::sub_", "aten::lerp",
    "aten::lerp_", "aten::div", "aten::div_", "aten::addcmul_", "aten::addcdiv_", "aten::clamp_",
    "aten::linalg_vector_norm", "aten::norm", "aten::sign", "aten::sqrt", "aten::sqrt_", "aten::copy_",
    "aten::pow", "aten::square", "aten::sum",
}  # fmt: skip
#: The same in the record of a step, where an operator in place has the name of the other one.
_UPDATING = {name.removeprefix("aten::").rstrip("_") for name in _UPDATES}
_HOLDERS = ("parameters(", "param_groups", "state_dict", "buffers(", "params", "grads", "weights")

#: Of the user's line: the change is simulated for all of it. Chosen, not fitted.
MOSTLY = 0.75
_ADAM = f"the time is in the arithmetic, not between the operations: {ADVICE}"


class ParameterLoop(Rule):
    area = "fusion"
    covers = ("framework-wait",)  # for each tensor of such a loop

    def find(self, context: Context) -> Iterator[Draft]:
        loops: dict[tuple[str, int], list[LineCost]] = {}
        known: set[tuple[str, int]] = set()  # which of them run over parameters
        sizes = parameter_shapes(context.sites(Optimizer.KIND))
        # What an optimizer of torch's does has a rule of its own.
        stepped = {place for site in context.sites(Optimizer.KIND) for place in site.uses}
        stepped |= _by_a_call(context)
        for cost in context.profile.lines:
            if cost.place in stepped or not _updates(cost):
                continue
            loop, over = _loop(context, cost, sizes)
            if loop is not None:
                loops.setdefault(loop, []).append(cost)
                known |= {loop} if over else set()
        for place, own in ((loop, loops[loop]) for loop in loops if loop in known):
            hottest = max(own, key=lambda cost: cost.step_ms)
            states = loaded(context.source(hottest.file), hottest.line)
            loading = _loading(context, states, own)
            spent = sum(cost.step_ms for cost in (*own, *loading))
            if not context.matters(spent):
                continue
            lists = partial(_lists, context, hottest, states)
            written_out = not context.on_gpu and _is_adam(own) and _between(own) < spent / 2
            calls = sum(op.count for cost in own for op in _updating(cost))
            yield context.draft(
                place,
                "A Python loop updates {tensors} tensors one by one, with {calls} operations a step. "
                "It takes {spent} ({share}).",
                {
                    "tensors": count("tensors", round(max(map(_rounds, own))), "per step"),
                    "calls": count("operations in the loop", round(calls), "per step"),
                    **context.spent("loop over tensors", spent),
                },
                cause=hottest.place,
                cost_ms=spent,
                change=_adam(own) if written_out else _over_lists(context, own, loading),
                fixes=[
                    _ADAM if written_out else lists,
                    *([partial(fused_adam, context, hottest)] if _is_adam(own) else []),
                    partial(read_at_once, context, hottest),
                    partial(norms_at_once, context, hottest),
                ],
            )
        yield from _in_frameworks(context, self.name)


def _loading(context: Context, states: Loaded | None, own: list[LineCost]) -> list[LineCost]:
    """Lines that load what the lines ``own`` made, without these themselves."""
    found = context.costs_of(states.source, states.load) if states is not None else []
    return [cost for cost in found if cost not in own]


def _lists(context: Context, cost: LineCost, states: Loaded | None) -> Fix:
    return averaged_in_place(context, states) if states is not None else lists_at(context, cost)


def _over_lists(context: Context, own: list[LineCost], loading: Sequence[LineCost] = ()) -> Change:
    """On a CPU an operation on a list works on one tensor after the other, too. Where it was not tried, only
    the time between the operations goes, but for that of the loop's head. An average that is made in place is
    one operation, and needs not be loaded."""
    places = tuple(cost.place for cost in own)
    if loading:
        removed = Scale(tuple(cost.place for cost in loading), device=0, host=0)
        left = 1 / len(AVERAGE)
        one = FuseOptimizer(places) if context.on_gpu else Scale(places, device=left, host=left)
        return Together((one, removed))
    if context.on_gpu:
        return FuseOptimizer(places)
    rounds = max(map(_rounds, own))
    each = sum(op.count for cost in own for op in _updating(cost)) / rounds
    otherwise = RemoveLaunches(places, fuse=False, keep=1 / (1 + each))
    sources = [(context.source(cost.file), cost.line) for cost in own]
    in_place = any(own_data(context, source, alone(source.statement_at(line))) for source, line in sources)
    return Replace("lists", places, otherwise, (str(round(rounds)), *((DATA,) if in_place else ())))


def _adam(own: list[LineCost]) -> Change:
    places = tuple(cost.place for cost in own)
    left = costs.value("fused-adam")
    return Replace("optimizer", places, Scale(places, left, left, assumed=True), ("Adam",))


def _between(own: list[LineCost]) -> float:
    """Milliseconds a step between the operators."""
    return sum(max(0.0, cost.step_ms - cost.device_ms) for cost in own)


def _is_adam(own: list[LineCost]) -> bool:
    """Whether each tensor is divided by a square root and has two averages, as in Adam's update."""
    calls: dict[str, float] = {}
    for op in (op for cost in own for op in _updating(cost)):
        calls[op.name.rstrip("_")] = calls.get(op.name.rstrip("_"), 0.0) + op.count
    roots = calls.get("aten::sqrt", 0.0)
    averages = calls.get("aten::lerp", 0.0) + calls.get("aten::mul", 0.0)
    divided = calls.get("aten::addcdiv", 0.0) + calls.get("aten::div", 0.0)
    return roots >= LEAST_ROUNDS and min(averages / 2, divided) >= roots


def _in_frameworks(context: Context, rule: str) -> Iterator[Draft]:
    """Such a loop in a framework, where it is nearly all that the user's line does."""
    for cost, spent in in_frameworks(context, rule):
        if spent < MOSTLY * cost.step_ms or not _updates(cost):
            continue
        calls = sum(op.count for op in _updating(cost))
        yield context.draft(
            cost.place,
            "A loop in the library updates {tensors} tensors one by one, with {calls} operations a step. It "
            "takes {spent} ({share}).",
            {
                "tensors": count("tensors", round(_often(cost)), "per step"),
                "calls": count("operations in the loop", round(calls), "per step"),
                **context.spent("loop over tensors", spent),
            },
            cost_ms=spent,
            change=_over_lists(context, [cost]),
            fixes=["choose its `foreach` or fused form where the object is made"],
        )


def _updating(cost: LineCost) -> list[Op]:
    return [op for op in cost.ops if op.name in _UPDATES and op.phase == "forward" and op.outer]


def _often(cost: LineCost) -> float:
    """How often the line calls the operator that it calls most."""
    calls: dict[str, float] = {}
    for op in _updating(cost):
        calls[op.name] = calls.get(op.name, 0.0) + op.count
    return max(calls.values(), default=0.0)


def _rounds(cost: LineCost) -> float:
    """How many rounds reached the line: of an operator that a round calls twice as often as the line ran. A
    comprehension's line runs once."""
    often = _often(cost)
    return min(often, cost.calls) if cost.calls >= LEAST_ROUNDS else often


def _updates(cost: LineCost) -> bool:
    """Whether the line does elementwise arithmetic on many tensors, none of it for a backward pass."""
    return _often(cost) >= LEAST_ROUNDS and not cost.nodes and not cost.backward_ms


def _by_a_call(context: Context) -> set[tuple[str, int]]:
    """Lines that call a loop of torch's or another library's, as `load_state_dict` has one."""
    flow = context.profile.facts.dataflow
    ways: dict[tuple[str, int], set[str]] = {}
    for name, site in zip(flow.name, flow.site, strict=True):
        short = flow.names[name].rpartition(".")[0].replace(".", "::")
        if 0 <= site < len(flow.sites) and short in _UPDATES:
            where = flow.sites[site]
            ways.setdefault(where.place, set()).add(where.via)
    return {place for place, seen in ways.items() if DIRECT not in seen}


def _loop(
    context: Context, cost: LineCost, sizes: dict[tuple[int, ...], int]
) -> tuple[tuple[str, int] | None, bool]:
    """Where the loop around a line, or around the only call of its function, begins, be it a comprehension or
    a ``map``, and whether it is known to run over parameters: by what it runs over, by the sizes of the
    tensors, which are those of most of an optimizer's parameters, or by the parameters that the line got in
    the recorded step."""
    source, around = _around(context, cost)
    for place, over in around:
        if over is not None and any(word in source.code(over) for word in _HOLDERS):
            return place, True
    met = {op.shapes[0] for op in _updating(cost) if op.shapes}
    same = sum(number for shape, number in sizes.items() if shape in met)
    known = same >= max(LEAST_ROUNDS, sum(sizes.values()) / 2)
    graph = None if known else graph_around(context.profile.facts.dataflow)
    if graph is not None:
        # Layers read parameters as well.
        updates = [node for node in graph.at(cost.place) if node.name in _UPDATING]
        given = {graph.origin(value) for node in updates for value in node.inputs}
        known = len(given & graph.parameters) >= LEAST_ROUNDS
    return (around[0][0] if around else None), known


_Around = list[tuple[tuple[str, int], cst.CSTNode | None]]


def _around(context: Context, cost: LineCost, *, called: bool = True) -> tuple[Source, _Around]:
    """The loops around a line, the innermost first: where they begin, and what they run over."""
    source = context.source(cost.file)
    statement = source.statement_at(cost.line)
    if statement is None:
        return source, []
    maps = [one for one in source.nodes(cst.Call, within=statement) if source.name(one.func) == "map"]
    found: _Around = [(source.place(one), one) for one in maps]
    found += [(source.place(one), one.iter) for one in source.nodes(cst.CompFor, within=statement)]
    for loop in source.loops_from(statement):
        found.append((source.place(loop), loop.iter if isinstance(loop, cst.For) else None))
    calling = callers(context, function_of(cost)) if called and not found else []
    return _around(context, calling[0], called=False) if len(calling) == 1 else (source, found)
