"""Autocast around the forward pass of a training step: where it goes, whether it is there, and the edit."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.lowering import Lowering
from warpline.rulekit.model_lines import model_name
from warpline.rulekit.scaling import scale
from warpline.rulekit.terms import descend
from warpline.rulekit.training import TrainingStep
from warpline.syntax.edits import Edits, Refused


def autocast_at(step: TrainingStep, hottest: LineCost) -> tuple[str, int]:
    """Where autocast is to begin: the statement with the products, or the first one where they are in
    functions that the statements call."""
    spans = ((one, step.source.span(one)) for one in step.forward)
    here = (one for one, ((first, _), (last, _)) in spans if first <= hottest.line <= last)
    in_step = next(here, None) if hottest.file == step.source.path else None
    name = model_name(step)
    calling = (
        one
        for one in step.forward
        if any(step.source.code(call.func) == name for call in descend(one, cst.Call))
    )
    place = in_step or (next(calling, None) if name is not None else None) or step.forward[0]
    return step.source.place(place)


def under_autocast(step: TrainingStep) -> bool:
    """Whether the step's forward or backward pass is inside an autocast block that nothing switches off."""
    return any(step.source.argument(call, "enabled") is None for call in _autocasts(step))


def _autocasts(step: TrainingStep) -> list[cst.Call]:
    around = [*step.source.ancestors(step.backward), *step.forward]
    items = (item.item for node in around if isinstance(node, cst.With) for item in node.items)
    return [one for one in items if isinstance(one, cst.Call) and step.source.is_named(one.func, "autocast")]


def with_autocast(context: Context, step: TrainingStep | None) -> Fix:
    """Autocast around the forward pass and the loss, in float16 with a GradScaler. Raises Refused."""
    if step is None:
        raise Refused("no forward pass and loss were found next to a `backward()`")
    if under_autocast(step) or context.profile.facts.flags.autocast:
        raise Refused("the step already uses autocast; these products run outside of it")
    if off := _autocasts(step):
        raise Refused(f"`{step.source.code(off[0])}` switches autocast off: change that")
    half_type = "bfloat16" if context.device.bf16 else "float16"
    Lowering(context, step.source, step.forward, half_type).check()
    edits = Edits(step.source)
    autocast = edits.add_import("torch.autocast", "import torch")
    half = edits.add_import("torch.bfloat16" if context.device.bf16 else "torch.float16", "import torch")
    edits.wrap(step.forward, f'with {autocast}("cuda", dtype={half}):')
    if context.device.bf16:
        return edits.fix("Run the forward pass under autocast in bfloat16", "unsafe")
    scale(step, edits)
    return edits.fix("Run the forward pass under autocast in float16, with a GradScaler", "unsafe")
