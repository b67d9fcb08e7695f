"""The script's own choice of the type that a library's model keeps its weights in, where nothing is trained:
``model.to(getattr(torch, settings.dtype))``."""

from __future__ import annotations

import re

import libcst as cst

from warpline.rulekit.autocast_choice import type_choice
from warpline.rulekit.choice import Choice
from warpline.rulekit.context import Context
from warpline.rulekit.graph import graph_of
from warpline.rulekit.model_lines import constructor
from warpline.rulekit.origins import only_value
from warpline.syntax.source import Source, receiver
from warpline.wire.frameworks import models


def weights_choice(context: Context) -> Choice | None:
    """The value for which a model is moved to float32 once it is made. None where the steps train, where
    weights of another type would meet numbers in float32, or where it is not known what sets the value."""
    if any(cost.backward_ms for cost in context.profile.lines) or _meets_float32(context):
        return None
    found = (
        type_choice(context, source, given.value)
        for source, call in context.calls("to")
        if context.reached.node(source, call) is not False and _moves_model(context, source, call)
        for given in call.args
    )
    return next((one for one in found if one is not None), None)


def _moves_model(context: Context, source: Source, call: cst.Call) -> bool:
    """Whether it is a library's model that ``call`` moves."""
    held = receiver(call)
    made = only_value(context, source, held) if isinstance(held, (cst.Name, cst.Attribute)) else None
    where, value = made or (source, held or call)
    name = constructor(where, value) if held is not None else ""
    return any(re.fullmatch(pattern, name) for pattern in models())


def _meets_float32(context: Context) -> bool:
    """Whether the recorded step has an operator on weights and on float32 numbers that no weight made: both
    would have another type."""
    graph = graph_of(context.profile.facts.dataflow)
    weights = set(graph.parameters)  # and views of them
    made = set(weights)
    for node in graph.nodes:
        read = set(node.inputs)
        others = (one for one in read - made if graph.dtype(one) == "float32" and graph.size(one) > 1)
        if read & weights and any(True for _ in others):
            return True
        if read and read <= weights:
            weights.update(node.outputs)
        if read & made:
            made.update(node.outputs)
    return False
