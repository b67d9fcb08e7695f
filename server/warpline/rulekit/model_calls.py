"""The lines that call the model in the forward pass, and what of that is compiled with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import chain

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below
from warpline.rulekit.compiled_reach import not_compiled
from warpline.rulekit.context import Context
from warpline.rulekit.model_lines import called_through, module_called, trained
from warpline.rulekit.terms.evaluate import descend
from warpline.rulekit.training import TrainingStep, calls_itself
from warpline.syntax.source import Source, called_name, parameters

#: Lines, and how often a step calls something there.
Calls = dict[LineCost, float]


def model_calls(context: Context, step: TrainingStep, name: str) -> Calls:
    """Lines of the forward pass that call ``name``, which may be handed to functions of the file, with how
    often they do in a step; of layers that are called one by one, the calls of all. Empty where none is
    seen."""
    layers, layer = trained(step)
    if layer is not None and layers == name:
        name = layer
    source, found = step.source, Calls()
    functions = {one.name.value: one for one in source.nodes(cst.FunctionDef)}
    waiting: list[tuple[cst.CSTNode, str]] = [(one, name) for one in step.forward]
    seen = set[tuple[cst.CSTNode, str]]()
    while waiting:
        within, model = waiting.pop()
        for call in descend(within, cst.Call):
            if _calls(source, call, model):
                cost = context.cost(*source.place(call))
                if cost is not None:  # a call's first line runs again after its other lines
                    ran = [one.calls for one in context.costs_of(source, call) if one.calls]
                    found[cost] = found.get(cost, 0.0) + min(ran, default=0.0)
                continue
            if called_through(step, call) == model:
                found |= {cost: cost.calls for cost in _below(context, source, call)}
                continue
            function = functions.get(source.code(call.func).removeprefix("self."))
            inside = _inside(source, call, function, model) if function is not None else None
            if function is not None and inside is not None and (function, inside) not in seen:
                seen.add((function, inside))
                waiting.append((function.body, inside))
    return found


def compiled_with(context: Context, calls: Collection[LineCost]) -> set[tuple[str, int]]:
    """``(file, line)`` of what is compiled with what ``calls`` call, and of these lines. What functions do
    that such a line calls beside the model, as a loss, is not, nor what torch.compile leaves as it is."""
    found = dict[tuple[str, int], LineCost]()
    for cost in calls:
        source = context.source(cost.file)
        beside = {source.code(call.func).removeprefix("self.") for call in source.at(cost.line, cst.Call)}
        inside = tuple(one for one in cost.called if one[1].rpartition(".")[2] not in beside)
        found |= {line.place: line for line in below(context, replace(cost, called=inside))}
    calling = {cost.place for cost in calls}
    within = [cost for place, cost in found.items() if place not in calling]
    return set(found) - not_compiled(context, within)


def _below(context: Context, source: Source, call: cst.Call) -> list[LineCost]:
    """The lines in the called method that call the module itself."""
    lines = chain(*(below(context, cost) for cost in context.costs_of(source, call)))
    method = called_name(call)
    return [
        cost
        for cost in dict.fromkeys(lines)
        if cost.function.rpartition(".")[2] == method and calls_itself(context, cost)
    ]


def _calls(source: Source, call: cst.Call, model: str) -> bool:
    given = source.code(call.args[0].value) if call.args else ""
    checkpointed = given == model and source.is_named(call.func, "checkpoint")
    return source.code(module_called(call)) == model or checkpointed


def _inside(source: Source, call: cst.Call, function: cst.FunctionDef, model: str) -> str | None:
    """What ``model`` is called in the function that ``call`` calls; None where it has no name there."""
    names = [one.name.value for one in parameters(function)]
    positions = names[1:] if isinstance(call.func, cst.Attribute) else names
    for at, one in enumerate(call.args):
        if source.code(one.value) == model and not one.star:
            if one.keyword is not None:
                return one.keyword.value if one.keyword.value in names else None
            return positions[at] if at < len(positions) else None
    return model if model.split(".", maxsplit=1)[0] not in names or model.startswith("self.") else None
