"""Writes a ``GradScaler`` into a training loop."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.training import TrainingStep
from warpline.syntax.edits import Edits, Refused


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
    clips = [
        call
        for call in source.nodes(cst.Call)
        if source.is_named(call.func, "clip_grad_norm_", "clip_grad_value_")
        and source.inside(call, step.loop)
    ]
    for call in clips[:1]:
        clip = source.statement(call)
        assert clip is not None
        edits.insert_before(clip, f"scaler.unscale_({optimizer})")
    edits.replace(steps[0], f"scaler.step({optimizer})")
    edits.insert_after(statement, "scaler.update()")
