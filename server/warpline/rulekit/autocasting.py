"""Autocast around the forward pass of a training step: where it goes, whether it is there, and the edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.autocast_off import entered_off
from warpline.rulekit.calling import MOSTLY, Function, below, function_of, is_forward
from warpline.rulekit.context import Context
from warpline.rulekit.lowering import Lowering, LoweringEverywhere
from warpline.rulekit.model_lines import model_name
from warpline.rulekit.terms import descend
from warpline.rulekit.training import TrainingStep
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement


@dataclass(frozen=True)
class Region:
    """Statements to put under autocast, and where their first product is."""

    source: Source
    statements: list[Statement]
    first: Statement


def region(context: Context, step: TrainingStep, spent: Mapping[LineCost, float]) -> Region:
    """The forward pass and the loss. Where a function that the step calls has the model's call, and what it
    returns would be float32 again: from that call to the function's end. ``spent``: lines with products."""
    called = _model_called(context, step, spent)
    if called is not None:
        source = context.source(called.file)
        statement = source.statement_at(called.line)
        block = source.block(statement) if statement is not None else []
        if statement in block and _is_body(source, block):
            rest = block[block.index(statement) :]
            inside = Lowering(context, source, rest, half(context))
            if inside.lowered is not None and not inside.lowered.leaving(inside.inside, unread=True):
                return Region(source, rest, statement)
    return Region(step.source, step.forward, _first(step, max(spent, key=lambda cost: spent[cost])))


def _first(step: TrainingStep, hottest: LineCost) -> Statement:
    """The statement with the products, or the first one where they are in functions that the statements
    call."""
    here = (one for one in step.forward if hottest.line in step.source.extent(one))
    in_step = next(here, None) if hottest.file == step.source.path else None
    name = model_name(step)
    calling = (
        one
        for one in step.forward
        if any(step.source.code(call.func) == name for call in descend(one, cst.Call))
    )
    return in_step or (next(calling, None) if name is not None else None) or step.forward[0]


def _model_called(context: Context, step: TrainingStep, spent: Mapping[LineCost, float]) -> LineCost | None:
    """The line that calls the model, in a function that the step calls: the innermost outside of all
    ``forward`` methods under which nearly all products are. None where the step itself calls it."""
    whole = sum(spent.values())
    lines = (cost for statement in step.forward for cost in context.costs_of(step.source, statement))
    waiting = {function for cost in lines for function in cost.called}
    found, seen = None, set[Function]()
    while waiting := {one for one in waiting if not is_forward(one)} - seen:
        seen |= waiting
        under = {
            cost: sum(spent.get(one, 0.0) for one in below(context, cost))
            for cost in context.profile.lines
            if function_of(cost) in waiting
        }
        most = max(under, key=lambda cost: under[cost], default=None)
        if most is None or under[most] < MOSTLY * whole:
            break
        found, waiting = most, set(most.called)
    return found


def _is_body(source: Source, block: list[Statement]) -> bool:
    """Whether these statements are all of a function."""
    body = source.parent(block[0])
    return body is not None and isinstance(source.parent(body), cst.FunctionDef)


def half(context: Context) -> str:
    """The type with 16 bits that the device multiplies."""
    return "bfloat16" if context.device.bf16 else "float16"


def lowering(context: Context, where: Region | None) -> Lowering:
    """What autocast would make of a region; None: of all that a framework runs."""
    if where is None:
        return LoweringEverywhere(context, half(context))
    return Lowering(context, where.source, where.statements, half(context))


def under_autocast(step: TrainingStep) -> bool:
    """Whether the step's forward or backward pass is inside an autocast block that nothing switches off."""
    return any(step.source.argument(call, "enabled") is None for call in _autocasts(step))


def _autocasts(step: TrainingStep) -> list[cst.Call]:
    around = [*step.source.ancestors(step.backward), *step.forward]
    items = (item.item for node in around if isinstance(node, cst.With) for item in node.items)
    return [one for one in items if isinstance(one, cst.Call) and step.source.is_named(one.func, "autocast")]


def with_autocast(context: Context, step: TrainingStep | None, where: Region | None) -> Fix:
    """Autocast around the forward pass and the loss, in float16 with a GradScaler. Raises Refused."""
    if step is None or where is None:
        raise Refused("no forward pass and loss were found next to a `backward()`")
    if context.profile.facts.flags.autocast and not context.autocast:
        raise Refused("the script's autocast is given float32, with which it does nothing: change that")
    if under_autocast(step) or context.autocast:
        raise Refused("the step already uses autocast; these products run outside of it")
    if off := _autocasts(step):
        raise Refused(f"`{step.source.code(off[0])}` switches autocast off: change that")
    inner = lowering(context, where)
    if kept := entered_off(context, inner):
        raise Refused(f"`{kept}` is entered inside of it, switched off: switch that on")
    inner.check()
    edits = Edits(where.source)
    autocast = edits.add_import("torch.autocast", "import torch")
    dtype = edits.add_import(f"torch.{half(context)}", "import torch")
    edits.wrap(where.statements, f'with {autocast}("cuda", dtype={dtype}):')
    if context.device.bf16:
        return edits.fix("Run the forward pass under autocast in bfloat16", "unsafe")
    others = edits if where.source is step.source else Edits(step.source)
    scale(step, others)
    return edits.fix("Run the forward pass under autocast in float16, with a GradScaler", "unsafe", others)


def scale(step: TrainingStep, edits: Edits) -> None:
    """Thread a GradScaler through the loop. Raises Refused."""
    source, steps = step.source, step.optimizer_steps()
    plain = isinstance(step.backward, cst.Call) and not step.backward.args
    if step.loop is None or len(steps) != 1 or steps[0].args or not plain:
        raise Refused("the loop around one plain `backward()` and one plain `optimizer.step()` was not found")
    if any(name.value == "scaler" for name in source.nodes(cst.Name)):
        raise Refused("the file already has a scaler")
    assert isinstance(steps[0].func, cst.Attribute)
    optimizer = source.code(steps[0].func.value)
    edits.insert_before(
        step.loop, f'scaler = {edits.add_import("torch.amp.GradScaler", "import torch")}("cuda")'
    )
    edits.replace(step.loss, f"scaler.scale({source.code(step.loss)})")
    statement = source.statement(steps[0])
    assert statement is not None
    clips = source.calls_of("clip_grad_norm_", "clip_grad_value_")
    for call in [call for call in clips if source.inside(call, step.loop)][:1]:
        clip = source.statement(call)
        assert clip is not None
        edits.insert_before(clip, f"scaler.unscale_({optimizer})")
    edits.replace(steps[0], f"scaler.step({optimizer})")
    edits.insert_after(statement, "scaler.update()")
