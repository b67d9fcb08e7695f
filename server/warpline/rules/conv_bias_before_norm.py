"""A convolution adds a bias that the batch norm after it subtracts again.

## What it does

Finds convolutions with a bias whose result goes directly into a batch norm, where adding the bias and
summing its gradient take a measurable part of the step. The fix passes `bias=False`. Where the step was
recorded, only the biases that a batch norm subtracts in it count.

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
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import libcst as cst

from warpline.model.profile import LineCost, Op
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
#: By line and output channels.
Shares = Mapping[tuple[tuple[str, int] | None, int], float]
_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


class ConvBiasBeforeNorm(Rule):
    area = "fusion"

    def find(self, context: Context) -> Iterator[Draft]:
        lines = context.profile.lines
        every = Spent(lines, _bias_ms)
        if not context.matters(every.total):
            return
        graph = whole_graph(context.profile.facts.dataflow)
        recorded = biased(graph) if graph is not None else None
        for source, (calls, layers) in _found(context, every, recorded).items():
            shares = _shares(recorded, layers) if recorded is not None else None
            spent = Spent(lines, partial(_bias_ms, shares=shares))
            if not context.matters(spent.total):
                continue
            held = _held(context, source, calls)
            yield context.draft(
                source.place(calls[0]) if held is None else held.place,
                "Adding the biases of convolutions and summing their gradients takes {spent} a step "
                "({share}). In {calls} of the places that make them, a batch norm follows directly and "
                "subtracts the bias again.",
                {
                    **context.spent("convolution biases", spent.total),
                    "calls": count("convolutions before a norm", len(calls), "convolutions"),
                },
                cause=spent.hottest.place,
                cost_ms=spent.total,
                change=less_device_time(spent, spent.total),
                fixes=[
                    partial(_fix, source, calls)
                    if held is None
                    else partial(_at, context, source, calls, held)
                ],
            )


#: Calls that make layers whose biases are subtracted again, and which of the recorded layers they may be.
_Found = tuple[list[cst.Call], set[int]]


def _found(
    context: Context, spent: Iterable[LineCost], recorded: list[Biased] | None
) -> dict[Source, _Found]:
    """What the text or the recorded step tells, by file. The text alone does not tell that a layer is made,
    nor that it runs."""
    sites = context.sites(Module.KIND)
    files = dict.fromkeys([*(cost.file for cost in spent), *(site.file for site in sites)])
    found: dict[Source, _Found] = {}
    for source in map(context.source, files):
        calls, layers = found[source] = [], set()
        followed = _followed(context, source)
        made = {call: [one for one in sites if _makes(source, call, one)] for call in followed}
        for site in sites:
            on_line = source.calls(site.line, *_CONVOLUTIONS) if site.file == source.path else []
            # Several on one line are one site, which has the arguments of the first.
            if len(on_line) == 1 and on_line[0] not in made:
                made[on_line[0]] = [site]
        for call, its in made.items():
            ran = [one for site in its for one in _ran(context, source, call, site, recorded or [])]
            subtracted = [one for one in ran if one.subtracted]
            told = (
                bool(subtracted) or recorded is None if call in followed else len(subtracted) == len(ran) > 0
            )
            if told and (its or not sites):
                calls.append(call)
                layers |= {one.weight for one in subtracted}
    return {source: each for source, each in found.items() if each[0]}


def _makes(source: Source, call: cst.Call, site: Site) -> bool:
    return site.file == source.path and site.line in source.extent(call)


def _shares(recorded: list[Biased], layers: set[int]) -> Shares:
    every = Counter((one.place, one.channels) for one in recorded)
    these = Counter((one.place, one.channels) for one in recorded if one.weight in layers)
    return {key: these[key] / every[key] for key in these}


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


def _ran(
    context: Context, source: Source, call: cst.Call, site: Site, recorded: list[Biased]
) -> list[Biased]:
    """The recorded convolutions with a bias that ``call`` may have made, by their sizes.

    Of a call that makes several only the first one's arguments are known, and those that are written there.
    """
    made, size, out = facts_of(Module, site), argument(site, "kernel_size"), argument(site, "out_channels")
    if not made.bias:
        return []
    if len(source.calls(site.line, *_CONVOLUTIONS)) != 1:
        return recorded
    if made.count and made.count > 1:
        written = source.passed(call, "kernel_size", 2, NOT_LITERAL)
        size = size if written is not NOT_LITERAL else None
        out = None
    return [
        one
        for one in _left_for(context, site, recorded)
        if (size is None or set(one.kernel) == _sizes(size.value))
        and (out is None or one.channels == out.value)
    ]


def _sizes(kernel: object) -> set[object]:
    return set(kernel) if isinstance(kernel, (list, tuple)) else {kernel}


def _bias_ms(cost: LineCost, shares: Shares | None = None) -> float:
    """Adding a bias of (1, C, 1, 1) within a convolution, and the sum that is its gradient; of these the
    ``shares`` of the lines' convolutions with so many channels."""
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

    def share(op: Op) -> float:
        return shares.get((cost.place, op.shapes[0][1]), 0.0) if shares is not None else 1.0

    return min(sum(op.device_ms * share(op) for op in (*added, *sums)), cost.step_ms)


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
