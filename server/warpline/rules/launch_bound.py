"""The step is bound by launch overhead: kernels finish before the host has queued the next one.

## What it does

Finds steps with short kernels in which the device is idle while the host launches them. The fix is
`torch.compile`, or CUDA graphs for code that is already compiled (`mode="reduce-overhead"`). In a script that
trains nothing, the one model whose code launches most is compiled where it was made. So is the one that the
function of the training step is only given.

The promise is for what is compiled: the code that the step reaches through its calls of the model. Each of
these calls costs the host time of its own, which adds up where a small model is called again and again.
Where a step's other code launches most of the kernels, no edit is offered. A loop over rows in the model
counts: compiled, its turns are written out, up to 64 of them. So does what compiled code merges on the
device. torch.compile stops at recurrent layers of torch's (`nn.LSTM`, `nn.GRU`, `nn.RNN`), compiles nothing
after one in the same function, and nothing of a function that calls one in a loop: the promise is without
that, and no edit is offered where the model has such a loop.

## Why is this slow

An operation takes the host about ten microseconds: Python, dispatcher, autograd, driver. If its kernels
take less, the device is idle between them. Compiled code launches fewer, larger kernels with less Python.

## Example

```python
#> steps step_ms=40 device_busy_percent=30
import torch

model = Net().to("cuda")
#^ found
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for inputs, labels in loader:
    logits = model(inputs)
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    #^ kernel ampere_gemm count=1500 device_ms=6
    loss = criterion(logits, labels)
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
    #^ kernel ampere_gemm count=1000 device_ms=5
    optimizer.step()
```

## Use instead

```python
import torch

model = Net().to("cuda")
model.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for inputs, labels in loader:
    logits = model(inputs)
    loss = criterion(logits, labels)
    loss.backward()
    optimizer.step()
```

## Example

If the step calls its layers one by one, each layer is compiled:

```python
#> steps step_ms=40 device_busy_percent=30
from torch.utils.checkpoint import checkpoint

layers = nn.ModuleList(Layer() for _ in range(6)).cuda()
#^ found
for x in batches:
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
        #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss = x.mean()
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
```

## Use instead

```python
from torch.utils.checkpoint import checkpoint

layers = nn.ModuleList(Layer() for _ in range(6)).cuda()
for layer in layers:
    layer.compile()
for x in batches:
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    loss = x.mean()
    loss.backward()
```

## Example

`compile()` of one of torch's own modules compiles nothing, but its `forward` can be compiled. The same goes
for a model whose `forward` the step calls by its name:

```python
#> steps step_ms=40 device_busy_percent=30
import torch
from torch import nn

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
net.compile()
#^ found; site compile backend=inductor
for x in batches:
    loss = net(x).mean()  #> cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
```

## Use instead

```python
import torch
from torch import nn

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
net.forward = torch.compile(net.forward)
for x in batches:
    loss = net(x).mean()
    loss.backward()
```

## Example

Compiled code that is still bound by launch overhead:

```python
#> steps step_ms=40 device_busy_percent=30
model = torch.compile(Net().cuda())
#^ found; site compile backend=inductor
for x in batches:
    loss = model(x).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    #^ op CompiledFunction count=1 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000
```

## Use instead

```python
model = torch.compile(Net().cuda(), mode="reduce-overhead")
for x in batches:
    loss = model(x).mean()
    loss.backward()
```

## Example

Layers that are compiled one by one run the same code several times before the backward pass. A CUDA graph
would overwrite its results, so none is offered:

```python
#> steps step_ms=40 device_busy_percent=30
layers = nn.ModuleList(Layer() for _ in range(6)).cuda()
for layer in layers:
    layer.compile()
    #^ found; site compile backend=inductor
for x in batches:
    for layer in layers:
        x = layer(x)
        #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500 calls=6
        #^ op "Torch-Compiled Region: 0/0" count=6 launches=1500
    loss = x.mean()
    loss.backward()
    #^ cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000 calls=1
```

## Use instead

One module that calls all layers, compiled as a whole.

## Example

If the step trains several models, each is compiled:

```python
#> steps step_ms=40 device_busy_percent=30
actor = Actor().cuda()
#^ found
critics = Critics().cuda()
for states in replay:
    loss = -critics(states, actor(states)).mean()
    #^ cost step_ms=25 device_ms=6 idle_ms=19 cpu_ms=25 launches=1500
    loss.backward()  #> cost step_ms=15 device_ms=5 idle_ms=10 cpu_ms=15 launches=1000

class Actor(nn.Module):
    def forward(self, states): ...

class Critics(nn.Module):
    def forward(self, states, actions): ...
```

## Use instead

```python
actor = Actor().cuda()
actor.compile()
critics = Critics().cuda()
critics.compile()
for states in replay:
    loss = -critics(states, actor(states)).mean()
    loss.backward()

class Actor(nn.Module):
    def forward(self, states): ...

class Critics(nn.Module):
    def forward(self, states, actions): ...
```

## Fix safety

Unsafe: compiled code rounds differently (about 1e-6 of the value in float32) and draws other random
numbers for dropout. The first steps and every new shape take long, because of the compilation. A CUDA
graph keeps the values, but the next call overwrites its outputs: clone tensors that are kept. None is
offered for code that runs several times before its backward pass, or again in it (checkpointing). It needs
more memory. Code that cannot be captured (CPU tensors, changing sizes) runs as before. Compiled code has no
gradients of gradients: where a step computes some (`create_graph=True`), no edit is offered.

## References

- [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
- [CUDA graphs: torch.compile](https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html)
- [torch.nn.Module.compile](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from warpline.model.change import (
    ABOUT,
    Change,
    CompiledCalls,
    NoAnomalyDetection,
    RemoveLaunches,
    Replace,
    Scale,
    Together,
)
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Refused, Rule, count, ms
from warpline.rulekit.calling import below, function_of, model_born
from warpline.rulekit.compiled_reach import MOST_TURNS, RECURRENT
from warpline.rulekit.compiling import (
    NOTHING_COMPILED,
    Target,
    compiled_for_nothing,
    compiled_lines,
    has_graphs,
    is_compiled,
    set_option,
    target,
    target_made,
)
from warpline.rulekit.host_made import made_on_device, making_ms, uniform
from warpline.rulekit.inference import steps
from warpline.rulekit.kernels import is_pointwise
from warpline.rulekit.launches import is_looping, launched_at, launching_ms, single_share
from warpline.rulekit.loaders import launching_share
from warpline.rulekit.own_launches import model_uncompilable, uncompilable
from warpline.rulekit.replaying import regions_overwritten
from warpline.rulekit.saving import Spent
from warpline.rulekit.training import TrainingStep
from warpline.wire.dataflow import Dataflow, running
from warpline.wire.probing import COMPILED
from warpline.wire.run import Site
from warpline.wire.sites import Compile, Module, facts_of

#: Busier than this, launching is not what the step waits for.
_BUSY_PERCENT = 80.0
#: A model whose code has so much of the launching is worth compiling alone. Chosen, not fitted.
_MOSTLY = 0.5
_ONE_BY_ONE = (
    " Compiled code also launches its kernels one by one; a CUDA graph launches all of them at once."
)
_MERGED = " Compiled code also merges elementwise kernels there, which take {merged}."
_CONSTANTS = (
    " The model also makes tensors of one number on the host, which takes {made}: compiled code makes "
    "them on the device."
)
_BY_HAND = (
    "no model was found that the step calls and that could be compiled by one line: compile what it calls, a "
    "model by its `compile()` or a function by `torch.compile`, or record it once as a CUDA graph "
    "(`torch.cuda.graph`) and replay that, as the step computes no gradients and never waits for the device"
)
_PART = (
    "what the step trains is called beside other work that launches most of these kernels, and compiling it "
    "alone would leave that as it is: compile a function that calls all of it"
)
#: What anomaly detection calls on each gradient.
_CHECK = "aten::isnan"
#: Kernels that take longer on average hide their launches.
_LONG_MS = 0.05


class LaunchBound(Rule):
    area = "fusion"
    needs = ("kernels",)

    def find(self, context: Context) -> Iterator[Draft]:
        profile = context.profile
        if profile.steps.device_busy_percent >= _BUSY_PERCENT:
            return
        every = steps(context)
        step = next((found for found in every if found.forward), None)
        aim = target(context, every)
        lines = _lines(context, step, aim)
        part = launching_share(context)
        single = {cost: single_share(cost) for cost in lines}
        idle = Spent(lines, lambda cost: part * single[cost] * launching_ms(cost))
        nothing = compiled_for_nothing(context, step)
        compiled = next(iter(context.sites("compile")), None) if nothing is None else None
        if nothing is None and is_compiled(context):
            if compiled is None or has_graphs(compiled):
                return
            # A graph of the compiled code changes nothing for the code around it.
            ran = compiled_lines(context)
            idle = Spent((cost for cost in idle if cost.place in ran), idle.__getitem__)
        total = idle.total
        launches, mean_ms = _launched(idle, single)
        if not context.matters(total) or launches < 1 or mean_ms > _LONG_MS or total < 0.1 * context.step_ms:
            return
        stopped = model_uncompilable(context, step)
        beside = _forward(context, step) - aim.inside if aim.inside and compiled is None else set()
        if not every and compiled is None:
            born, inside = _only_model(context, idle)
            if born is not None and inside.total >= _MOSTLY * total:
                aim = target_made(context, born, _runs(context, born))
                idle, total, stopped = inside, inside.total, uncompilable(context, inside)
        elif beside and stopped is None:
            inside = Spent((cost for cost in idle if cost.place not in beside), idle.__getitem__)
            if inside.total >= _MOSTLY * total:
                idle, total = inside, inside.total
            else:
                stopped = _PART
        hottest, (launches, mean_ms) = idle.hottest, _launched(idle, single)
        place = (aim.place if stopped != _PART else None) or launched_at(context, idle, hottest)
        if nothing is not None and step is not None:
            place = step.source.place(nothing)
        elif compiled is not None:
            place = compiled.place
        if not every and compiled is None and aim.place is None and _replayable(context):
            stopped = stopped or _BY_HAND
        if compiled is not None:
            stopped = regions_overwritten(context, every)
        # Else nothing would be compiled, or launched as a CUDA graph.
        promised = stopped is None and (compiled is not None or aim.promised)
        fixes = [partial(_graph, context, compiled)] if compiled is not None else aim.fixes
        made = (
            Spent((), making_ms) if compiled is not None else uniform(context, _model(context, step) - beside)
        )
        constants = made_on_device(made) if context.matters(made.total) else ()
        # What never waits for a launch is compiled with the rest.
        whole = [cost for cost in lines if cost.place in aim.inside and cost.launches]
        costs = tuple(dict.fromkeys((*idle, *(whole if compiled is None else ()))))
        change, graphs = _changes(context, costs, constants, aim, is_new=compiled is None)
        merged = _merged_ms(costs) if promised and compiled is None else 0.0
        yield context.draft(
            place,
            "Launch overhead: the device is idle for {spent} a step ({share}) while the host "
            "launches {launches} kernels of {mean} each on average."
            + (_ONE_BY_ONE if compiled is not None else f" {NOTHING_COMPILED}" if nothing is not None else "")
            + (_MERGED if context.matters(merged) else "")
            + (_CONSTANTS if constants else ""),
            {
                **context.spent("idle while launching", total),
                "launches": count("launches", round(launches), "per step"),
                "mean": ms("mean kernel", mean_ms),
                **({"merged": ms("elementwise kernels", merged)} if context.matters(merged) else {}),
                **({"made": ms("made on the host", made.total)} if constants else {}),
            },
            cause=hottest.place,
            cost_ms=total,
            saving_ms=total if promised else 0.0,
            change=change if promised else None,
            fixes=fixes if stopped is None else [stopped],
            alternative=graphs if promised and aim.graphs else None,
            hides=("launch overhead", Scale(idle.places, host=0.0)),
        )


def _lines(context: Context, step: TrainingStep | None, aim: Target) -> list[LineCost]:
    """The lines that launch overhead is counted at. A loop over rows has a rule of its own; in a model that
    is compiled its turns are written out, where these are few enough."""
    apart = _apart(context, step)
    within = aim.inside - {cost.place for cost in _called(context, step)}
    return [
        cost
        for cost in context.profile.lines
        if cost.place not in apart
        and (not is_looping(cost) or (cost.place in within and cost.calls <= MOST_TURNS * aim.calls))
    ]


def _launched(idle: Spent, single: dict[LineCost, float]) -> tuple[float, float]:
    """Kernels that the lines launch one by one in a step, and how long one takes on average, in ms."""
    launches = sum(single[cost] * cost.launches for cost in idle)
    return launches, sum(single[cost] * cost.device_ms for cost in idle) / max(1.0, launches)


def _replayable(context: Context) -> bool:
    """Whether a step computes no gradients, and nothing in it waits for the device."""
    waits = any(cost.syncs > 0 or cost.sync_ms > 0 for cost in context.profile.lines)
    return context.profile.facts.flags.grad_enabled_in_step is False and context.on_gpu and not waits


def _pieces(flow: Dataflow, places: frozenset[tuple[str, int]]) -> float:
    """Calls of compiled code that reads of numbers and recurrent layers add in a step where ``places`` are
    compiled.

    They cut what is compiled there. Each function that is running at that moment goes on in code of its
    own, which is called on its own. Calls count for the forward and the backward pass: half of one where
    autograd is switched off.
    """
    ungraphed, found = set(flow.ungraphed), 0.0
    for row, stack in enumerate(flow.stack):
        cuts = not flow.outputs[row] or flow.names[flow.name[row]].split(".")[1] in RECURRENT
        around = running(flow, stack) if cuts else ()
        inside = sum(flow.frames[one].place in places for one in around)
        # The outermost one calls what is compiled.
        found += max(0, inside - 1) * (0.5 if row in ungraphed else 1.0)
    return found


def _merged_ms(costs: Iterable[LineCost]) -> float:
    """The time of kernels that compiled code merges with others, in ms."""
    kernels = (kernel for cost in costs for kernel in cost.kernels)
    return sum(kernel.device_ms for kernel in kernels if is_pointwise(kernel.name))


def _changes(
    context: Context, costs: Sequence[LineCost], constants: Sequence[Change], aim: Target, *, is_new: bool
) -> tuple[Change, Change | None]:
    """What the fixes change: the first, and the second where there is one. ``costs``: what is compiled, or
    compiled already and becomes CUDA graphs (not ``is_new``). ``constants``: what is made on the device
    then."""
    flow = context.profile.facts.dataflow
    runs = aim.calls if is_new else 1.0
    places = tuple(cost.place for cost in costs)
    made = runs + _pieces(flow, aim.inside or frozenset(places)), len(flow.parameters)
    calls, replays = (CompiledCalls(places, *made, graphs) for graphs in (False, True))
    if not is_new:
        return Together((RemoveLaunches(places, fuse=False), replays)), None
    often = f"{ABOUT}{round(runs)}" if runs > 1 else "1"
    modes = ("", often, "reduce-overhead") if aim.graphs else ("", often)
    graphs = ("reduce-overhead", often)
    first, second = (
        # The checks first: their times are as they were measured.
        (*_unchecked(context, costs), *_compiled(costs, words, called), *constants)
        for words, called in ((modes, calls), (graphs, replays))
    )
    return _together(first), _together(second)


def _unchecked(context: Context, costs: Sequence[LineCost]) -> tuple[Change, ...]:
    """What autograd's anomaly detection does less: compiled code is one operator for it, which has one
    traceback, and gives the gradients of the parameters."""
    places = tuple(cost.place for cost in costs if cost.check_ms + cost.traceback_ms > 0)
    made = sum(op.count for cost in costs for op in cost.ops if op.name == _CHECK)
    if not places or not made:
        return ()
    return (NoAnomalyDetection(places, min(1.0, len(context.profile.facts.dataflow.parameters) / made)),)


def _together(changes: tuple[Change, ...]) -> Change:
    return changes[0] if len(changes) == 1 else Together(changes)


def _compiled(costs: Sequence[LineCost], modes: tuple[str, ...], calls: CompiledCalls) -> Iterator[Change]:
    """What compiled code changes, by what is tried apart: loops over rows say nothing of the rest."""
    for some in ([cost for cost in costs if not is_looping(cost)], list(filter(is_looping, costs))):
        places = tuple(cost.place for cost in some)
        launched = (RemoveLaunches(places, fuse=False),) if calls.graphs else ()
        called = (calls,) if costs[0] in some else ()
        if places:
            yield Replace(COMPILED, places, Together((RemoveLaunches(places), *launched, *called)), modes)


def _apart(context: Context, step: TrainingStep | None) -> set[tuple[str, int]]:
    """Lines that are not compiled with the model: an optimizer's, and what the loop does beside the forward
    and the backward pass (averages of weights), with the functions that these alone call."""
    found = {place for site in context.sites("optimizer") for place in site.uses}
    if step is not None:
        found |= {(step.source.path, line) for line in step.beside}
    return found | (_reached(context, context.costs(found)) - _model(context, step))


def _model(context: Context, step: TrainingStep | None) -> set[tuple[str, int]]:
    """Lines of the forward and the backward pass, and of what they call."""
    if step is None:
        return set()
    backward = _reached(context, context.costs_of(step.source, step.backward))
    return _forward(context, step) | backward


def _forward(context: Context, step: TrainingStep | None) -> set[tuple[str, int]]:
    """Lines of the forward pass, and of what they call."""
    return _reached(context, _called(context, step))


def _called(context: Context, step: TrainingStep | None) -> list[LineCost]:
    """The lines that call the forward pass."""
    if step is None:
        return []
    return list(chain(*(context.costs_of(step.source, one) for one in step.forward)))


def _reached(context: Context, costs: Iterable[LineCost]) -> set[tuple[str, int]]:
    return {line.place for cost in costs for line in below(context, cost)}


def _only_model(context: Context, idle: Spent) -> tuple[Site | None, Spent]:
    """Where the one model was made in whose code the most is launched, and what of ``idle`` is there."""
    born = model_born(context, idle.hottest)
    if born is None or (facts_of(Module, born).count or 1) > 1:
        return None, idle
    return born, Spent((cost for cost in idle if model_born(context, cost) == born), idle.__getitem__)


def _runs(context: Context, born: Site) -> float:
    """How often a step calls the model from elsewhere."""
    own = {function_of(cost) for cost in context.profile.lines if model_born(context, cost) == born}
    calling = (cost for cost in context.profile.lines if function_of(cost) not in own)
    return sum(cost.calls for cost in calling if own.intersection(cost.called))


def _graph(context: Context, site: Site) -> Fix:
    if facts_of(Compile, site).dynamic:
        raise Refused("it is compiled for changing sizes, and each size would need its own CUDA graph")
    edits = set_option(context, site, "mode", '"reduce-overhead"')
    return edits.fix("Launch the compiled kernels as CUDA graphs", "unsafe")
