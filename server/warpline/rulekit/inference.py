"""The step of a script that only infers: the line that calls a library's model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.model_lines import classes_of, model_name
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.source import Statement
from warpline.wire.frameworks import models

#: A line calls a library's model where so much of it is in a library, and it is so much of the step.
_LIBRARY, _SHARE = 0.5, 10.0


@dataclass(frozen=True)
class InferenceStep(TrainingStep):
    """``backward`` is the call of the model: nothing is sent back."""

    @cached_property
    def loss(self) -> cst.BaseExpression:
        assert isinstance(self.backward, cst.Call)
        return self.backward

    @property
    def handed_over(self) -> bool:
        """Always False: no framework is involved."""
        return False

    @cached_property
    def forward(self) -> list[Statement]:
        """The statement with the call."""
        statement = self.source.statement(self.backward)
        return [statement] if statement is not None else []


def steps(context: Context) -> list[TrainingStep]:
    """The training steps; where nothing is trained, the costliest line that calls a library's model."""
    found = training_steps(context)
    if found or any(cost.backward_ms for cost in context.profile.lines):
        return found
    costs = [cost for cost in context.profile.lines if context.share(cost.step_ms) >= _SHARE]
    for cost in sorted(costs, key=lambda cost: -cost.step_ms):
        step = _step(context, cost) if _in_library(cost) else None
        if step is not None:
            return [step]
    return []


def _in_library(cost: LineCost) -> bool:
    spent = sum(each.step_ms for each in cost.inside if each.file != cost.file)
    return spent >= _LIBRARY * cost.step_ms


def _step(context: Context, cost: LineCost) -> InferenceStep | None:
    source = context.source(cost.file)
    for call in source.calls(cost.line):
        name = source.code(call.func)
        step = InferenceStep(source, call, context.reached)
        if model_name(step) != name:
            continue
        if any(re.fullmatch(pattern, one) for pattern in models() for one in classes_of(step, name)):
            return step
    return None
