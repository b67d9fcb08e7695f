"""Activations are computed again in the backward pass, though memory has room for them.

## What it does

Finds activation checkpointing on a device that has enough memory without it: what the recomputed forward
passes leave allocated for the backward pass takes at most 80 % of the memory that is free at the step's
peak. On a CPU this is what the machine has available, or less in a container with a limit. A run without a
record of the memory, or with CUDA graphs, which have memory of their own, is judged by what the recomputed
operators read: all their tensors, each counted every time an operator that does the work itself reads it.
There, compiled code is not reported, because the sizes of its operators are not recorded, and neither are
recurrent layers of cuDNN, MIOpen or oneDNN and maximum pooling, because they store more than they read.

A `torch.autograd.Function` of the script's own whose `backward` runs the forward pass again is checkpointing,
too. The finding is at the flag, option or field that switches it on, if it is known, also of a library's
model (`model.set_grad_checkpointing(args.grad_checkpointing)` of timm).

## Why is this slow

Checkpointing runs the forward pass of a block a second time inside the backward pass, to keep its
activations out of memory until then. If they fit, the second forward pass is wasted: without it the step is
shorter, and the gradients are the same to the last bit, dropout included.

## Example

```python
#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=60000000000
import torch
from torch.utils.checkpoint import checkpoint

class Model(torch.nn.Module):
    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
            #^ found; cost step_ms=60 device_ms=60 recompute_ms=15; op _NoopSaveInputs count=12
            #^ op aten::mm phase=recompute count=24 device_ms=9 shapes=[[8192,1024],[1024,4096]] dtypes=float
        return self.head(x)
```

## Use instead

```python
import torch
from torch.utils.checkpoint import checkpoint

class Model(torch.nn.Module):
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
```

## Example

A flag has it checkpointed:

```python
#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=60000000000
import torch
from torch.utils.checkpoint import checkpoint

class Model(torch.nn.Module):
    save_memory = True  #> found

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.save_memory else block(x)
            #^ cost step_ms=60 device_ms=60 recompute_ms=15; op _NoopSaveInputs count=12
            #^ op aten::mm phase=recompute count=24 device_ms=9 shapes=[[8192,1024],[1024,4096]] dtypes=float
        return self.head(x)
```

## Use instead

```python
import torch
from torch.utils.checkpoint import checkpoint

class Model(torch.nn.Module):
    save_memory = False

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.save_memory else block(x)
        return self.head(x)
```

## Example

Operators around another one, and views, read what it reads:

```python
#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=9000000000
import torch
from torch.utils.checkpoint import checkpoint_sequential

y = checkpoint_sequential(stages, 4, images, use_reentrant=False)
#^ found; cost step_ms=60 device_ms=60 recompute_ms=15; op _NoopSaveInputs count=4
#^ op aten::conv3d phase=recompute count=9 shapes=[[8,64,32,96,96]] dtypes=c10::Half
#^ op aten::convolution phase=recompute count=9 outer=0 shapes=[[8,64,32,96,96]] dtypes=c10::Half
#^ op aten::cudnn_convolution phase=recompute count=9 device_ms=14 shapes=[[8,64,32,96,96]] dtypes=c10::Half
#^ op aten::detach phase=recompute count=18 shapes=[[8,64,32,96,96]] dtypes=c10::Half
```

## Use instead

The same: call the stages one after another, `for stage in stages: images = stage(images)`.

## Example

On a CPU:

```python
#> device kind=cpu capability=None multiprocessors=0
#> memory peak_bytes=900000000 free_bytes=40000000
from torch.utils.checkpoint import checkpoint

y = checkpoint(decoder, x, use_reentrant=False)
#^ found; cost step_ms=60 device_ms=60 cpu_ms=60 recompute_ms=20
#^ op aten::conv2d phase=recompute cpu_ms=19 device_ms=0.1 shapes=[[8,32,96,96]] dtypes=float count=3
#^ op aten::mkldnn_convolution phase=recompute device_ms=18 shapes=[[8,32,96,96]] dtypes=float count=3
#^ op aten::view phase=recompute device_ms=0.1 shapes=[[8,32,96,96]] dtypes=float count=3
```

## Use instead

```python
from torch.utils.checkpoint import checkpoint

y = decoder(x)
```

## Example

Blocks that are compiled each by itself:

```python
#> device memory_bytes=80000000000
#> memory peak_bytes=9000000000 free_bytes=60000000000
#> totals recomputed_bytes=3000000000
from torch.utils.checkpoint import checkpoint

class Block(torch.nn.Module):
    def forward(self, x):
        return self.out(F.silu(self.gate(x)) * self.value(x))  #> cost step_ms=50 device_ms=50 recompute_ms=12

class Model(torch.nn.Module):
    def forward(self, x):
        for block in self.compiled_blocks:
            x = checkpoint(block, x, use_reentrant=False)
            #^ found; cost step_ms=10; op _NoopSaveInputs count=12
            #^ op CompiledFunction phase=recompute count=12 cpu_ms=2; op CompiledFunction count=12 cpu_ms=2
        return self.head(x)
```

## Use instead

```python
from torch.utils.checkpoint import checkpoint

class Block(torch.nn.Module):
    def forward(self, x):
        return self.out(F.silu(self.gate(x)) * self.value(x))

class Model(torch.nn.Module):
    def forward(self, x):
        for block in self.compiled_blocks:
            x = block(x)
        return self.head(x)
```

## Fix safety

Unsafe: values stay the same, but the step needs more memory, and longer sequences or larger batches than
those of the measured steps may not fit.

## References

- [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import libcst as cst

from warpline.model.change import Scale, Together
from warpline.model.costs import bound
from warpline.model.dtypes import ELEMENT_BYTES
from warpline.model.profile import LineCost, Op
from warpline.model.report import Fix
from warpline.rulekit import Context, Draft, Edits, Refused, Rule, Source, size
from warpline.rulekit.calling import Function, below, callers, function_of
from warpline.rulekit.flags import Switch, changed_by_hand, flags_of, switch_of, switching_call, turned
from warpline.rulekit.graph.graph import MOVED, SAME
from warpline.rulekit.terms import atom
from warpline.rulekit.terms.evaluate import module_members
from warpline.syntax.source import called_name
from warpline.wire.frameworks import switches_of_checkpointing

#: Share of the free memory that the activations may take: the allocator needs some room besides.
MOST_OF_FREE = bound("memory-for-activations")
#: Operators with a result, of a size that is not recorded, that only their backward pass reads.
_STORE_MORE = (
    "aten::_cudnn_rnn",
    "aten::miopen_rnn",
    "aten::mkldnn_rnn_layer",
    "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices",
)
#: Share of the recomputation whose operators may store an unknown amount.
MOST_UNKNOWN = bound("unknown-activations")
#: What torch runs where ``checkpoint`` is called: before 2.13 with ``use_reentrant=False``, and with True.
_CALLS = ("_NoopSaveInputs", "CheckpointFunction")
#: A script's own function like it has its name.
_COPIED = "CheckpointFunction.apply"
#: What torch records around a call of compiled code, and the call of its backward pass, inside a node.
_AROUND, _BACKWARD = "Torch-Compiled Region", "CompiledFunctionBackward"
#: A call of ``checkpoint``, or what hands it on.
Use = tuple[Source, cst.CSTNode]
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_WRAPPERS = tuple(
    f"torch.distributed.algorithms._checkpoint.checkpoint_wrapper.{name}"
    for name in ("checkpoint_wrapper", "apply_activation_checkpointing")
)
#: Arguments of ``checkpoint`` that are not the function's.
_SEQUENTIAL = "torch.nn.Sequential"
_OWN = {"use_reentrant", "preserve_rng_state", "determinism_check", "debug", "early_stop"}


#: An operator whose own time is less of its whole time hands its work on. Chosen, not fitted: on a CPU those
#: around a convolution have 0.0001 to 0.04 of it.
OWN_WORK = 0.2


class NeedlessCheckpointing(Rule):
    area = "memory"

    def find(self, context: Context) -> Iterator[Draft]:
        costs = [cost for cost in context.profile.lines if _runs_again(cost)]
        # Where the host sets the pace, its calls cost more of the step than the device's time.
        spent = sum(cost.step_ms * max(_again_shares(cost)) for cost in costs)
        free = context.profile.facts.memory.free_bytes
        if not context.matters(spent) or not free:
            return
        most = _kept(context, costs)
        if most is None or most > MOST_OF_FREE * free:
            return
        on_gpu = context.on_gpu
        hottest = max(costs, key=lambda cost: cost.recompute_ms)
        called = _called(context)
        uses = _uses(context, called)
        switch = _switch(context, uses)
        switching = _switching(context, uses) if switch is None or not switch.on else None
        if switching is not None and (switch := _switch_of(context, *switching)) is not None:
            switching = None  # `if args.save_memory: model.enable_checkpointing()`
        place = called[0].place if len(called) == 1 else hottest.place
        if len(uses) == 1 and _block(*uses[0]) is not None:
            place = uses[0][0].place(uses[0][1])
        if switching is not None:
            place = switching[0].place(switching[1])
        yield context.draft(
            switch.flag.place if switch is not None and switch.on else place,
            "The backward pass computes activations again: {spent}, {share}. They would take at most {most}, "
            f"and {{free}} of the {'device' if on_gpu else 'machine'}'s memory are free.",
            {
                **context.spent("recomputation", spent),
                "most": size("activations", most),
                "free": size("free memory", float(free)),
            },
            cause=hottest.place,
            cost_ms=spent,
            change=Together(tuple(_without(cost) for cost in costs)),
            fixes=[partial(_left_out, *switching)]
            if switching is not None
            else [partial(_fix, context, uses, switch)],
        )


def _runs_again(cost: LineCost) -> bool:
    """Also a line whose operators only launch what another line's code computes, as those of compiled code
    do."""
    return cost.recompute_ms > 0 or any(op.outer and op.phase == "recompute" for op in cost.ops)


def _kept(context: Context, costs: list[LineCost]) -> float | None:
    """Bytes that the activations would take at most. What the recomputed passes left allocated, where that
    was seen: a graph of kernels has memory of its own, which it does not ask for in a step. Else what their
    operators read. None where that is not known."""
    facts = context.profile.facts
    seen = context.profile.totals.get("recomputed_bytes", 0.0)
    if seen > 0 and not facts.captured_graphs and not facts.replays:
        return seen
    if facts.compiled_kernels:
        return None  # of compiled code only what goes in is recorded, and not what lies between
    costs = [cost for cost in costs if cost.recompute_ms > 0]
    again, on_gpu = sum(cost.recompute_ms for cost in costs), context.on_gpu
    if sum(cost.recompute_ms for cost in costs if _unknown(cost, on_gpu)) > MOST_UNKNOWN * again:
        return None
    return sum(_read(op) for cost in costs for op in cost.ops if _again(op, on_gpu))


def _again(op: Op, on_gpu: bool) -> bool:
    """An operator that is run again and does the work itself, on a GPU with kernels of its own. Operators
    around it (``conv2d``, and again under autocast) and views read the same tensors."""
    works = on_gpu or (
        op.device_ms >= OWN_WORK * op.cpu_ms and op.name.removeprefix("aten::") not in SAME | MOVED
    )
    return op.phase == "recompute" and bool(op.shapes) and op.device_ms > 0 and works


def _unknown(cost: LineCost, on_gpu: bool) -> bool:
    again = [op for op in cost.ops if _again(op, on_gpu)]
    return not again or any(op.name in _STORE_MORE for op in again)


def _read(op: Op) -> float:
    """Bytes of an operator's arguments, of all its calls. What the backward pass needs are arguments and
    results, and a result that no operator reads is the block's own, which is kept anyway."""
    tensors = zip(op.shapes, op.dtypes, strict=False)
    return op.count * sum(math.prod(shape) * ELEMENT_BYTES.get(kind, 0) for shape, kind in tensors)


def _without(cost: LineCost) -> Scale:
    device, host = _again_shares(cost)
    return Scale((cost.place,), device=1 - device, host=1 - host)


def _again_shares(cost: LineCost) -> tuple[float, float]:
    """What of the line is recomputation: of the device's time, and of the host's by the time of the calls."""
    spent = cost.forward_ms + cost.backward_ms + cost.recompute_ms
    device = cost.recompute_ms / spent if spent > 0 else 0.0
    calls = [op for op in cost.ops if (op.outer and not op.name.startswith(_AROUND)) or op.name == _BACKWARD]
    whole = sum(op.cpu_ms for op in calls)
    again = sum(op.cpu_ms for op in calls if op.phase == "recompute")
    return device, again / whole if whole > 0 else device


def _called(context: Context) -> list[LineCost]:
    """Lines that call ``checkpoint``. Where no operator says it, the text does, of lines with something that
    is computed again, there or in a function that they call; else who calls whom does."""
    lines = context.profile.lines
    found = [cost for cost in lines if any(op.name in _CALLS for op in cost.ops)]
    again = {function_of(cost) for cost in lines if _runs_again(cost)}
    found = found or [
        cost
        for cost in lines
        if (_runs_again(cost) or again & {function_of(one) for one in below(context, cost)})
        and context.source(cost.file).calls(cost.line, *_names(context))
    ]
    return found or _entered_again(context)


def _entered_again(context: Context) -> list[LineCost]:
    """The line that calls, in the forward pass, what other lines call in the captured steps: the line of the
    backward pass enters it again. Empty where there are several such lines."""
    flow = context.profile.facts.dataflow
    entered: dict[Function, set[tuple[str, int]]] = {}
    for around, inner in flow.stacks:
        if around >= 0:
            frame, caller = flow.frames[inner], flow.frames[flow.stacks[around][1]]
            entered.setdefault((frame.file, frame.function), set()).add(caller.place)
    again = [
        places
        for function, places in entered.items()
        if any(cost.place not in places for cost in callers(context, function))
    ]
    places = set().union(*again)
    return [cost for cost in context.profile.lines if cost.place in places] if len(places) == 1 else []


def _uses(context: Context, called: list[LineCost]) -> list[Use]:
    """The calls of ``checkpoint`` on the lines ``called``, or of the function that the script has copied from
    torch. Where they call it by another name, what hands it on in the script, ``partial(checkpoint, block)``
    or ``checkpoint if lean else plain``, and calls of what torch has to wrap a module."""
    calls = [[(source, call) for call in source.calls(cost.line, *_names(context))]
             for cost in called for source in [context.source(cost.file)]]  # fmt: skip
    if any(calls):
        return [one for found in calls for one in found] if all(calls) else []
    found = (use for source in context.sources() for use in _handed_on(source))
    return [use for use in found if context.reached.node(*use) is not False]


def _names(context: Context) -> list[str]:
    """Names of what runs a block again, also of own functions whose ``backward`` records a graph."""
    own = [
        f"{one.name.value}.apply"
        for source in context.sources()
        for one in source.nodes(cst.ClassDef)
        if any(source.name(base.value) == "torch.autograd.Function" for base in one.bases)
        and any(called_name(call) == "enable_grad" for call in source.nodes(cst.Call, within=one))
    ]
    return ["checkpoint", "checkpoint_sequential", _COPIED, *own]


def _handed_on(source: Source) -> Iterator[Use]:
    for node in source.nodes(cst.Name, cst.Attribute):
        above = source.parent(node)
        name = source.name(node)
        if name in _WRAPPERS and isinstance(above, cst.Call) and above.func is node:
            yield source, above
        elif name == _CHECKPOINT and isinstance(above, cst.IfExp):
            yield source, node
        elif name == _CHECKPOINT and isinstance(above, cst.Arg):
            yield source, source.parent(above) or node


def _block(source: Source, use: cst.CSTNode) -> cst.BaseExpression | None:
    """The block in ``partial(checkpoint, block)``, without anything else for it, and in what wraps it."""
    if not isinstance(use, cst.Call):
        return None
    given = [arg for arg in use.args if not _is_own(arg)]
    if source.name(use.func) in _WRAPPERS:
        return given[0].value if given and not given[0].star else None
    bound = (
        source.is_named(use.func, "partial")
        and len(given) == 2
        and not any(arg.star or arg.keyword for arg in given)
        and source.name(given[0].value) == _CHECKPOINT
    )
    return given[1].value if bound else None


def _switch(context: Context, uses: list[Use]) -> Switch | None:
    """The one flag by which all the calls run."""
    first, *others = [switch_of(context, *use) for use in uses] or [None]
    if first is None:
        return None
    return first if all(one is not None and one.flag.node is first.flag.node for one in others) else None


def _switch_of(context: Context, source: Source, call: cst.Call) -> Switch | None:
    """The flag that the switching call is given, or by which it runs."""
    given = (one for arg in call.args[:1] for one in flags_of(context, source, arg.value, True))
    flag = next((one for one in given if one.flag.kind != "literal"), None)
    return flag or switch_of(context, source, call)


def _switching(context: Context, uses: list[Use]) -> tuple[Source, cst.Call] | None:
    """The one call that has all of them run: ``model.enable_checkpointing()``; a library's method, where the
    library calls ``checkpoint``."""
    if not uses:
        calls = [*context.calls(*switches_of_checkpointing())]
        ran = [one for one in calls if context.reached.node(*one) is not False]
        return ran[0] if len(ran) == 1 else None
    found = [switching_call(context, *use) for use in uses]
    first = found[0] if found else None
    if first is None or any(one is None or one[1] is not first[1] for one in found):
        return None
    return first if context.reached.node(*first) is not False else None


def _left_out(source: Source, call: cst.Call) -> Fix:
    return Edits(source).remove_call(call).fix("Do not switch checkpointing on", "unsafe")


def _fix(context: Context, uses: list[Use], switch: Switch | None) -> Fix:
    if switch is not None and not switch.on:
        raise Refused("the flag of the call is off as it is written: do not switch it on")
    if switch is not None:
        return turned(switch.flag).fix("Keep the activations", "unsafe")
    by_hand = "call the blocks without `checkpoint`, or do not switch gradient checkpointing on"
    if len(uses) != 1:
        raise Refused(by_hand)
    ((source, call),) = uses
    block = _block(source, call)
    if isinstance(call, cst.Call) and isinstance(source.parent(call), cst.Expr) and block is not None:
        return _left_out(source, call)
    if block is not None:
        return Edits(source).replace(call, source.code(block)).fix("Keep the activations", "unsafe")
    if isinstance(call, cst.Call) and source.is_named(call.func, "checkpoint_sequential"):
        return _sequence(source, call, by_hand)
    if not isinstance(call, cst.Call) or not source.is_named(call.func, "checkpoint"):
        raise Refused(changed_by_hand(context, source, call) or by_hand)
    if not call.args or call.args[0].keyword is not None:
        raise Refused(by_hand)
    function, *rest = call.args
    if function.star or any(arg.keyword is not None and arg.keyword.value == "context_fn" for arg in rest):
        raise Refused("it chooses which activations are kept: change that by hand")
    if source.unpacked(call):
        raise Refused(f"the unpacked arguments may include `checkpoint`'s own: {by_hand}")
    kept = [source.code(arg).rstrip().removesuffix(",").rstrip() for arg in rest if not _is_own(arg)]
    edits = Edits(source).replace(call, f"{atom(source.code(function.value))}({', '.join(kept)})")
    return edits.fix("Keep the activations", "unsafe")


def _sequence(source: Source, call: cst.Call, by_hand: str) -> Fix:
    """The call of an ``nn.Sequential`` that ``checkpoint_sequential`` gets: an attribute that ``__init__``
    makes one, or what a subclass inherits. Raises Refused for other functions."""
    given = [source.argument(call, name, at) for at, name in enumerate(("functions", "segments", "input"))]
    owner = source.enclosing(call, cst.ClassDef)
    blocks, value = (source.code(one.value) if one is not None else "" for one in given[::2])
    if owner is None or not value or any(arg.star for arg in call.args):
        raise Refused(by_hand)
    made = module_members(owner).get(blocks.removeprefix("self."))
    inherited = [source.name(one.value) for one in owner.bases] == [_SEQUENTIAL]
    if blocks in ("self", "list(self)", "[*self]") and inherited:
        called = "super().forward"
    elif made is not None and blocks.startswith("self.") and source.name(made.func) == _SEQUENTIAL:
        called = blocks
    else:
        raise Refused(by_hand)
    return Edits(source).replace(call, f"{called}({value})").fix("Keep the activations", "unsafe")


def _is_own(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in _OWN
