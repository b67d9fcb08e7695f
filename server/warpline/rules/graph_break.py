"""A line causes a graph break in `torch.compile`.

## What it does

Finds graph breaks that Dynamo reported, with Dynamo's reason, at lines or in functions that take a measurable
part of the step, or over which much data goes: what the compiled code on one side of the break made, and only
the compiled code on the other side and its backward pass read, as the allocator's record tells. That is told
where Inductor's own kernels run next to the break on both sides, so that it could fuse them. What the
backward pass reads counts, too, as if it were computed again there, which Inductor does within one graph.
Gradients count that cross the break the other way. Where nothing of the function with the break was compiled,
its elementwise and reduction kernels count, which nothing fuses. On a CPU Inductor's kernels leave no events:
there the time of the compiled code before the break and after it counts. At most the shorter part is saved.
The fix moves printing and logging out of the compiled code.

A function that has a break is not inlined, so the compiled functions that call it are cut in two at the call,
however deep. Their time counts, and the finding stands in the function that has the break.

## Why is this slow

At a graph break the compiled code ends: its results are written to memory, Python runs the line, and a
new graph begins. Nothing is fused across the break, and the host launches the kernels of both parts.

## Example

```python
import torch

@torch.compile
def forward(x, w):
    h = x @ w  #> cost device_ms=5
    print("shape", h.shape)
    #^ found; cost step_ms=3 idle_ms=3 cpu_ms=3; event graph_break reason="call to builtin print"
    return h.relu()  #> cost device_ms=5
```

## Use instead

```python
import torch

@torch.compile
def forward(x, w):
    h = x @ w
    if not torch.compiler.is_compiling():
        print("shape", h.shape)
    return h.relu()
```

To keep what it prints, let Dynamo print it after the graph:
`torch._dynamo.config.reorderable_logging_functions.add(print)`. A logger's call is a break even where its
level is off.

## Example

A break in a loop:

```python
#> steps step_ms=20
import torch

@torch.compile
def advance(depth, flow):
    for _ in range(4):
        speed = (9.81 * depth).sqrt() + (flow / depth).abs()
        #^ cost device_ms=9 calls=4; kernel elementwise_kernel count=20 device_ms=9
        step = 0.4 / speed.max().item()
        #^ found; cost device_ms=1 calls=4; kernel reduce_kernel count=4 device_ms=1
        #^ event graph_break reason="Unsupported Tensor.item() call"
        depth = depth - step * (flow.roll(-1) - flow.roll(1)) / 2
        #^ cost device_ms=9 calls=4; kernel elementwise_kernel count=20 device_ms=9
    return depth
```

## Use instead

`0.4 / speed.max()`: the arithmetic goes on with a tensor of one number, and nothing waits.

## Example

A number that is only shown later:

```python
import torch

class Flow:
    @torch.compile
    def advance(self, speed):
        speed = speed * 0.5 + speed.sin()  #> cost device_ms=5
        self.fastest = speed.max().item()
        #^ found; cost step_ms=3 idle_ms=3 cpu_ms=3; event graph_break reason="Unsupported Tensor.item() call"
        return speed.relu()  #> cost device_ms=5

flow = Flow()
for speed in speeds:
    flow.advance(speed)
    if flow.fastest > 20.0:
        print(f"fast: {flow.fastest ** 0.5:.3f}")
```

## Use instead

```python
import torch

class Flow:
    @torch.compile
    def advance(self, speed):
        speed = speed * 0.5 + speed.sin()
        self.fastest = speed.max().detach()
        return speed.relu()

flow = Flow()
for speed in speeds:
    flow.advance(speed)
    if flow.fastest > 20.0:
        print(f"fast: {flow.fastest ** 0.5:.3f}")
```

## Fix safety

Unsafe: the compiled code no longer prints or logs it, nor calls what computes its arguments. An attribute
that `.item()` gives a number stays a tensor of one number where all that reads it shows it with a format, or
compares it in an `if`: what is computed of it there is then rounded as tensors are. Not with CUDA graphs: the
next step overwrites it.

## References

- [Graph breaks](https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#graph-breaks)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from warpline.model.change import CompiledCalls, Fuse, RemoveLaunches, Scale, Together
from warpline.model.profile import Crossing, LineCost
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Rule, count, size
from warpline.rulekit.compiled_reach import (
    calls_from_compiled,
    calls_of,
    head_of,
    regions_of,
    skipped_at,
)
from warpline.rulekit.compiling import compiled_lines
from warpline.rulekit.fusible import chains, passes_ms
from warpline.rulekit.kernels import COMPILED
from warpline.rulekit.left_out import left_out, said_at
from warpline.rulekit.message import NUMBER
from warpline.rulekit.number_kept import number_kept
from warpline.rulekit.terms import function_at
from warpline.wire.run import CompileEvent

#: How torch's messages begin, before the reason: from 2.13 on, and where a whole function is not compiled.
_TRYING = re.compile(
    r"(Failed to handle graph break gracefully\.[^\n]*\n+)?"
    r"(Encountered graph break when attempting to trace [^\n]*\n+)?"
)
#: Pieces on both sides of a break.
_BOTH = 2
_BY_HAND = "what to do instead depends on what the line is for"
#: What to do where the value of a tensor is read in a function that is not compiled.
_KEPT = (
    "let the value stay on the device: without the `float()` or `.item()`, arithmetic goes on with a tensor "
    "of one number. Only a shape, a condition or a text needs the number itself"
)


class GraphBreak(Rule):
    area = "compiled"

    def find(self, context: Context) -> Iterator[Draft]:
        crossings = {
            one.place: one for one in sorted(context.profile.crossings, key=lambda one: one.saved_ms)
        }
        events: dict[tuple[str, int], CompileEvent] = {}
        for one in context.profile.facts.compile_events:
            if one.kind == "graph_break":  # one place has several where several compiled functions call it
                events.setdefault(one.place, one)
        for event in events.values():
            skipped = _skipped(context, event)
            if skipped is not None:
                yield skipped
                continue
            own = context.cost(event.file, event.line)
            calls = calls_from_compiled(context, own) if own is not None else []
            if not context.can("kernels"):
                draft = _cut_up(context, event, calls) or _run(context, event, own)
                if draft is not None:
                    yield draft
                continue
            spent, crossing = _lost_ms(context, event, calls), crossings.get(event.place)
            if crossing is not None and crossing.saved_ms > spent:
                draft = _crossed(context, event, crossing, calls)
            else:
                draft = _waited(context, event, spent, calls)
            if draft is not None:
                yield draft


def _skipped(context: Context, event: CompileEvent) -> Draft | None:
    """What could be fused in a function that is not compiled because of the break."""
    source = context.source(event.file)
    function = function_at(source, event.line)
    if function is None or not context.can("kernels") or skipped_at(context, source, function) is not event:
        return None
    ran = compiled_lines(context)
    costs = [
        cost
        for cost in context.costs_of(source, function)
        if cost.kernels and cost.place not in ran and function_at(source, cost.line) is function
    ]
    runs = chains(sorted(costs, key=lambda cost: cost.line), None)
    kernels = [kernel for run in runs for kernel in run.kernels]
    spent = passes_ms(runs)
    if not kernels or not context.matters(spent):
        return None
    places = tuple(cost.place for run in runs for cost in run.costs)
    kept = "Tensor.item()" in event.reason and said_at(source, event.line) is None
    return context.draft(
        event.place,
        f"Graph break of torch.compile{_reason(event)}, after which it cannot go on: none of "
        f"`{function.name.value}` is compiled. The elementwise and reduction kernels there, {{calls}}, take "
        "{spent} ({share}), and would be fused into a few.",
        {
            **context.spent("elementwise kernels", spent),
            "calls": count("elementwise kernels", round(sum(one.count for one in kernels)), "per step"),
            "breaks": count("graph breaks reported", event.count, "breaks"),
        },
        cost_ms=spent,
        saving_ms=max(0.0, spent - max(kernel.device_ms for kernel in kernels)),
        # At least what each line makes is fused: that a whole function becomes one kernel is seldom so.
        change=Together(
            (
                *(run.change for run in runs if run.products),
                *(Fuse((cost.place,)) for run in runs if not run.products for cost in run.costs),
                CompiledCalls(places, calls_of(context, source, function)),
            )
        ),
        fixes=[_KEPT if kept else partial(_fix, context, (event.place,))],
    )


def _cut_up(context: Context, event: CompileEvent, calls: list[LineCost]) -> Draft | None:
    """Where the CPU runs what Inductor compiled: the pieces that the break makes of it. Their kernels leave
    no events, so their time is at the ``def`` lines, and at the break itself for code that goes on there."""
    before, regions = 0.0, frozenset[str]()
    places = tuple(dict.fromkeys((event.place, *(call.place for call in calls))))
    for file, line in places:
        source = context.source(file)
        function = function_at(source, line)
        compiled = regions_of(context, source, function) if function is not None else frozenset()
        if function is not None and not compiled <= regions:
            regions |= compiled
            before += sum(cost.step_ms for cost in head_of(context, source, function))
    gone_on = [cost for cost in context.costs(places) if _pieces([cost], regions)]
    pieces, behind = round(_pieces(context.profile.lines, regions)), sum(cost.idle_ms for cost in gone_on)
    # What goes on joins what is before it, and at most the shorter part is saved. Else the pieces are of
    # several calls, and one stays.
    saving = min(before, behind) if gone_on else before * (1 - 1 / max(1, pieces))
    if pieces < _BOTH or not context.matters(saving):
        return None
    spent = before + behind
    return context.draft(
        event.place,
        f"Graph break of torch.compile{_reason(event)}: it cuts compiled code into {{pieces}} pieces a "
        "step, and what one makes for another goes through memory. Their own loops take {spent} ({share}); "
        "those of one piece would be fused.",
        {
            **context.spent("loops of the compiled code", spent),
            "pieces": count("pieces", pieces, "per step"),
            "breaks": count("graph breaks reported", event.count, "breaks"),
        },
        cause=_cut_at(calls),
        cost_ms=spent,
        saving_ms=saving,
        fixes=[partial(_fix, context, (event.place,))],
    )


def _pieces(costs: Iterable[LineCost], regions: frozenset[str]) -> float:
    """How many times a step runs one of the ``regions`` at these lines."""
    ops = [op for cost in costs for op in cost.ops if op.name.startswith(COMPILED)]
    return sum(op.count for op in ops if op.name.rpartition(" ")[2] in regions)


def _run(context: Context, event: CompileEvent, own: LineCost | None) -> Draft | None:
    """What the line of the break takes where the CPU is the device."""
    if own is None or not context.matters(own.step_ms):
        return None
    return context.draft(
        event.place,
        f"Graph break of torch.compile{_reason(event)}: the line takes {{spent}} a step ({{share}}).",
        {
            **context.spent("the line", own.step_ms),
            "breaks": count("graph breaks reported", event.count, "breaks"),
        },
        cost_ms=own.step_ms,
        change=RemoveLaunches((event.place,)),
        fixes=[partial(_fix, context, (event.place,))],
    )


def _waited(context: Context, event: CompileEvent, spent: float, calls: list[LineCost]) -> Draft | None:
    """The host's work at the break, for which the device waits."""
    if not context.matters(spent):
        return None
    return context.draft(
        event.place,
        f"Graph break of torch.compile{_reason(event)}: the host works and the device waits "
        "for {spent} a step ({share}).",
        {
            **context.spent("host time at the break", spent),
            "breaks": count("graph breaks reported", event.count, "breaks"),
        },
        cause=_cut_at(calls),
        cost_ms=spent,
        change=RemoveLaunches((event.place, *(call.place for call in calls))),
        fixes=[partial(_fix, context, (event.place,))],
    )


def _crossed(
    context: Context, event: CompileEvent, crossing: Crossing, calls: list[LineCost]
) -> Draft | None:
    """The bytes that go through memory at the break."""
    spent = crossing.saved_ms
    if not context.matters(spent):
        return None
    places = {
        (file, line)
        for kernel in context.profile.facts.compiled_kernels
        if kernel.region in crossing.regions
        for file, line, _ in kernel.lines
    }
    left = max(0.0, 1 - spent / crossing.device_ms) if crossing.device_ms else 1.0
    return context.draft(
        event.place,
        f"Graph break of torch.compile{_reason(event)}: {{moved}} a step are written on one side of it, only "
        "to be read on the other. One kernel would do both parts, and save about {spent} ({share}).",
        {
            **context.spent("saved by one kernel for both parts", spent),
            "moved": size("written on one side of the break, read on the other", crossing.bytes),
            "breaks": count("graph breaks reported", event.count, "breaks"),
        },
        cause=_cut_at(calls),
        cost_ms=spent,
        change=Scale(tuple(sorted(places)), device=left),
        fixes=[partial(_fix, context, (*crossing.also, event.place))],
    )


def _cut_at(calls: list[LineCost]) -> tuple[str, int] | None:
    """The call from compiled code that takes longest."""
    return max(calls, key=lambda call: call.step_ms).place if calls else None


def _lost_ms(context: Context, event: CompileEvent, calls: list[LineCost]) -> float:
    """What the line costs, or the idle time of its function and of the compiled ones that call it, when that
    is more."""
    own = context.cost(event.file, event.line)
    idle: dict[tuple[str, int], float] = {}
    for file, line in (event.place, *(call.place for call in calls)):
        source = context.source(file)
        function = function_at(source, line)
        if function is not None:
            (first, _), (last, _) = source.span(function)
            idle.update((cost.place, cost.idle_ms) for cost in context.costs_within(file, first, last))
    return max(own.step_ms if own is not None else 0.0, sum(idle.values()))


def _reason(event: CompileEvent) -> str:
    """Dynamo's first sentence, or that after what it was about to trace. One with numbers is left to it."""
    said = _TRYING.sub("", event.reason.strip())
    first = re.split(r"\.(?=\s|$)|\n", said)[0].strip()
    return (
        f" ({first})" if first and len(first) < 120 and not NUMBER.search(first) and "{" not in first else ""
    )


def _fix(context: Context, places: tuple[tuple[str, int], ...]) -> Fix:
    """The edit of all breaks between the same code."""
    source, line = context.source(places[0][0]), places[0][1]
    if len(places) == 1 and source.calls(line, "item") and said_at(source, line) is None:
        return number_kept(context, places[0], _BY_HAND)
    return left_out(context, places, _BY_HAND)
