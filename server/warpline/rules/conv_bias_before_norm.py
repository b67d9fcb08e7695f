"""A convolution adds a bias that the batch norm after it subtracts again.

## What it does

Finds convolutions with a bias whose result goes directly into a batch norm, where adding the bias and
summing its gradient take a measurable part of the step. The fix passes `bias=False`.

## Why is this slow

Batch norm subtracts the mean of each channel, and the bias with it, so the bias has no effect. Adding
it still reads and writes the whole activation, and its gradient is a sum over the whole activation.

## Example

```python
from torch import nn

net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1),  #> found
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.BatchNorm2d(64),
)
for images, labels in loader:
    logits = net(images)
    #^ cost device_ms=40
    #^ op aten::add_ count=2 device_ms=2 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
    #^ op aten::convolution count=2 device_ms=20
```

## Use instead

```python
from torch import nn

net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1, bias=False),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1, bias=False),
    nn.BatchNorm2d(64),
)
for images, labels in loader:
    logits = net(images)
```

## Example

```python
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size, size, 3)  #> found
        self.norm = nn.BatchNorm2d(size)
        self.head = nn.Conv2d(size, 1, 1)

    def forward(self, x):
        x = self.conv(x)
        #^ cost device_ms=10; op aten::add_ device_ms=2 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
        x = self.norm(x)
        return self.head(x)
```

## Use instead

```python
from torch import nn

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size, size, 3, bias=False)
        self.norm = nn.BatchNorm2d(size)
        self.head = nn.Conv2d(size, 1, 1)

    def forward(self, x):
        x = self.conv(x)
        x = self.norm(x)
        return self.head(x)
```

## Fix safety

Unsafe: values agree up to rounding, but the state dict loses the biases (older checkpoints load with
`strict=False`). In evaluation mode, a trained bias shifts the stored means. No edit is offered where the
script sets up or reads a bias that may be one of these without asking whether there is one.

## References

- [Performance tuning guide: disable bias before batch norm](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit import NOT_LITERAL, Context, Draft, Edits, Refused, Rule, Source, count
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.biased import Biased, biased
from warpline.rulekit.holders import argument, by_hand, holder, literal_at
from warpline.rulekit.layer_rows import is_before
from warpline.rulekit.saving import Spent, less_device_time
from warpline.rulekit.terms import descend
from warpline.wire.births import Holder
from warpline.wire.run import Site
from warpline.wire.sites import Module, facts_of

_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


class ConvBiasBeforeNorm(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        spent = Spent(context.profile.lines, _bias_ms)
        total = spent.total
        if not context.matters(total):
            return
        found = _found(context, spent)
        for source, calls in found.items():
            held = _held(context, source, calls)
            yield context.draft(
                source.place(calls[0]) if held is None else held.place,
                "Adding the biases of convolutions and summing their gradients takes {spent} a step "
                "({share}). In {calls} of the places that make them, a batch norm follows directly and "
                "subtracts the bias again.",
                {
                    **context.spent("convolution biases", total),
                    "calls": count("convolutions before a norm", len(calls), "convolutions"),
                },
                cause=spent.hottest.place,
                cost_ms=total,
                change=less_device_time(spent, total),
                fixes=[
                    partial(_fix, source, calls)
                    if held is None
                    else partial(_at, context, source, calls, held)
                ],
            )


def _found(context: Context, spent: Iterable[LineCost]) -> dict[Source, list[cst.Call]]:
    """The calls that make layers whose biases are subtracted again, by the recorded step or by the text."""
    sites = context.sites(Module.KIND)
    files = dict.fromkeys([*(cost.file for cost in spent), *(site.file for site in sites)])
    found = {source: _followed(context, source) for source in map(context.source, files)}
    graph = whole_graph(context.profile.facts.dataflow)
    recorded = biased(graph) if graph is not None else []
    for site in sites:
        source = context.source(site.file)
        calls = source.calls(site.line, *_CONVOLUTIONS)
        # Several on one line are one site, which has the arguments of the first.
        if len(calls) != 1 or calls[0] in found[source]:
            continue
        if _is_subtracted(source, calls[0], site, _left_for(context, site, recorded)):
            found[source].append(calls[0])
    return {source: calls for source, calls in found.items() if calls}


def _held(context: Context, source: Source, calls: list[cst.Call]) -> Holder | None:
    """The one place outside the calls that holds the ``bias`` of all of them."""
    lines = {source.line(call) for call in calls}
    held = {
        holder(site, "bias") for site in _made(context) if site.file == source.path and site.line in lines
    }
    one = held.pop() if len(held) == 1 else None
    return one if one is not None and one.kind != "call" else None


def _made(context: Context) -> list[Site]:
    return [site for site in context.sites(Module.KIND) if facts_of(Module, site).type in _CONVOLUTIONS]


def _left_for(context: Context, site: Site, recorded: list[Biased]) -> list[Biased]:
    """The recorded convolutions that ``site`` may have made: all but those that others made.

    Where every layer that was made has run, one layer of known sizes is one of those with these sizes: if no
    more of them have run than other sites made, none is this one's.
    """
    made = [(one, facts_of(Module, one).count or 1) for one in _made(context) if facts_of(Module, one).bias]
    if sum(times for _, times in made) != len({one.weight for one in recorded}):
        return recorded
    ran: dict[tuple[frozenset[object], object], set[int]] = {}
    for one in recorded:
        ran.setdefault((frozenset(one.kernel), one.channels), set()).add(one.weight)
    others: Counter[tuple[frozenset[object], object]] = Counter()
    for other, times in made:
        size, out = argument(other, "kernel_size"), argument(other, "out_channels")
        if other is not site and times == 1 and size is not None and out is not None:
            others[frozenset(_sizes(size.value)), out.value] += 1
    theirs = [ran.get(key, set()) for key, times in others.items() if len(ran.get(key, ())) == times]
    gone = set().union(*theirs)
    return [one for one in recorded if one.weight not in gone]


def _is_subtracted(source: Source, call: cst.Call, site: Site, recorded: list[Biased]) -> bool:
    """Whether the biases of all convolutions that may have been made by ``call`` are subtracted again.

    Of a call that makes several only the first one's arguments are known, and those that are written there.
    """
    made, size, out = facts_of(Module, site), argument(site, "kernel_size"), argument(site, "out_channels")
    if made.count and made.count > 1:
        written = source.passed(call, "kernel_size", 2, NOT_LITERAL)
        size = size if written is not NOT_LITERAL else None
        out = None
    same = [
        one
        for one in recorded
        if (size is None or set(one.kernel) == _sizes(size.value))
        and (out is None or one.channels == out.value)
    ]
    return bool(made.bias) and bool(same) and all(one.subtracted for one in same)


def _sizes(kernel: object) -> set[object]:
    return set(kernel) if isinstance(kernel, (list, tuple)) else {kernel}


def _bias_ms(cost: LineCost) -> float:
    """Adding a bias of (1, C, 1, 1) within a convolution, and the sum that is its gradient."""
    added = [
        op
        for op in cost.ops
        if op.name in ("aten::add_", "aten::add")
        and not op.outer
        and len(op.shapes) > 1
        and _is_bias(op.shapes)
    ]
    if not added:
        return 0.0
    sums = [op for op in cost.ops if op.name == "aten::sum" and op.phase == "backward"]
    sums = [op for op in sums if op.shapes and len(op.shapes[0]) > 3]
    return min(sum(op.device_ms for op in (*added, *sums)), cost.step_ms)


def _is_bias(shapes: tuple[tuple[int, ...], ...]) -> bool:
    whole, bias = shapes[0], shapes[1]
    return (
        len(whole) == len(bias) > 2 and [size != 1 for size in bias].count(True) == 1 and bias[1] == whole[1]
    )


def _followed(context: Context, source: Source) -> list[cst.Call]:
    """The calls that made convolutions with a bias, straight before a batch norm."""
    made = [call for call in source.nodes(cst.Call) if source.is_named(call.func, *_CONVOLUTIONS)]
    found = [call for call in made if is_before(source, call, *_NORMS) or _in_forward(source, call)]
    ran = [call for call in found if context.reached.node(source, call) is not False]
    return [call for call in ran if source.passed(call, "bias", 7) is not False]


def _in_forward(source: Source, call: cst.Call) -> bool:
    """``self.norm(self.conv(x))``, or one statement after the other."""
    owner = source.enclosing(call, cst.ClassDef)
    assign = source.parent(call)
    if owner is None or not isinstance(assign, cst.Assign) or not source.is_named(call.func, *_CONVOLUTIONS):
        return False
    name = source.code(assign.targets[0].target)
    norms = {
        source.code(other.targets[0].target)
        for other in descend(owner, cst.Assign)
        if isinstance(other.value, cst.Call) and source.is_named(other.value.func, *_NORMS)
    }
    used = [item for item in descend(owner, cst.Call) if source.code(item.func) == name]
    return bool(used) and all(_goes_into(source, item, norms) for item in used)


def _goes_into(source: Source, call: cst.Call, norms: set[str]) -> bool:
    if (outer := source.taking(call)) is not None:
        return source.code(outer.func) in norms
    holder, statement = source.parent(call), source.statement(call)
    if not isinstance(holder, cst.Assign) or statement is None:
        return False
    target, block = source.code(holder.targets[0].target), source.block(call)
    index = block.index(statement)
    following = block[index + 1] if index + 1 < len(block) else None
    for item in descend(following, cst.Call) if following is not None else ():
        if source.code(item.func) in norms and len(item.args) == 1:
            return source.code(item.args[0].value) == target
    return False


def _fix(source: Source, calls: list[cst.Call]) -> Fix:
    _check_unread(source, calls)
    edits = Edits(source)
    for call in calls:
        present = source.argument(call, "bias", 7)
        if present is not None and source.literal(present.value) is not True:
            raise Refused(f"bias comes from `{source.code(present.value)}`: change it there")
        edits.set_argument(call, "bias", "False", 7)
    return edits.fix("Make the convolutions without bias", "unsafe")


def _is_used(source: Source, attribute: cst.Attribute) -> bool:
    """Whether something is done with the tensor: a part of it is asked for, or it is initialized."""
    holder, call = source.parent(attribute), source.taking(attribute)
    inits = call is not None and "init" in source.name(call.func)
    return inits or (isinstance(holder, cst.Attribute) and holder.value is attribute)


def _check_unread(source: Source, calls: list[cst.Call]) -> None:
    """Raise Refused where the script reads a bias, as to set it up, of what may be one of these convolutions,
    and does not ask whether there is one."""
    holders = (source.parent(call) for call in calls)
    made = {source.code(one.targets[0].target) for one in holders if isinstance(one, cst.Assign)}
    for attribute in source.nodes(cst.Attribute):
        base = source.code(attribute.value)
        if attribute.attr.value != "bias" or not _is_used(source, attribute):
            continue
        around = [one for one in source.ancestors(attribute) if isinstance(one, (cst.If, cst.IfExp))]
        tests = [source.code(one.test) for one in around]
        if any("None" in test or re.search(rf"(?<!\(){re.escape(base)}\.bias\b", test) for test in tests):
            continue
        kinds = [test for test in tests if "isinstance" in test or "type(" in test]
        any_layer = not source.assigned(base) and all("Conv" in test or "Module" in test for test in kinds)
        if base in made or any_layer:
            raise Refused(f"`{source.code(attribute)}` is None then: allow for that first")


def _at(context: Context, source: Source, calls: list[cst.Call], held: Holder) -> Fix:
    """The edit where the value is written that the convolutions get, if no others get it."""
    reason = by_hand(held, "bias")
    if reason:
        raise Refused(reason)
    _check_unread(source, calls)
    # Linear layers and norms often share such an option.
    given = [site for site in context.sites(Module.KIND) if holder(site, "bias") == held]
    if len({site.place for site in given}) > len(calls):
        raise Refused("layers without a batch norm directly after them get their bias from there too")
    place, node = literal_at(context, held, True)
    return Edits(place).replace(node, "False").fix("Make the convolutions without bias", "unsafe")
