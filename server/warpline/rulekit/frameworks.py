"""Framework objects that the user constructs, and whether their settings apply."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from math import prod
from typing import Any

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.origins import origin
from warpline.syntax.source import Source
from warpline.wire.frameworks import Construction, Setting, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, Optimizer, facts_of

#: A line belongs to a framework when so much of it is spent in the framework's files.
LEAST_SHARE = 0.5
#: Share of the weights that adapters are at most. Chosen, not fitted.
MOST_TRAINED = 0.1


def construction_call(context: Context, site: Site, one: Construction) -> tuple[Source, cst.Call] | None:
    """The call at ``site`` in the text, or of the parser that makes the object; None where neither is there:
    the framework makes that object itself, from another one."""
    source = context.source(site.file)
    type_ = facts_of(Framework, site).type
    made = [*(one.called or (one.name,)), *([type_] if type_ else [])]
    call = source.call(site.line, *made, *one.parsers, *(name for name, _ in one.within))
    call = call or next(
        (each for each in source.calls(site.line) if _bound(context, source, each, made)), None
    )
    return (source, call) if call is not None else None


def _bound(context: Context, source: Source, call: cst.Call, names: Sequence[str]) -> bool:
    """Whether ``call`` calls something else that is one of ``names``, or a ``partial`` of it."""

    def ends(there: Source, node: cst.BaseExpression) -> bool:
        if isinstance(node, cst.Call) and there.is_named(node.func, "partial") and node.args:
            node = node.args[0].value
        return isinstance(node, (cst.Name, cst.Attribute)) and there.is_named(node, *names)

    found = origin(context, source, call.func, ends=ends)
    return isinstance(found.node, cst.BaseExpression) and ends(found.source, found.node)


def values_of(site: Site) -> dict[str, Any]:
    """The settings' values at last: those of the call, and what was set as an attribute afterwards."""
    made = facts_of(Framework, site)
    return {**(made.values or {}), **(made.changed or {})}


def runs_in(context: Context, place: tuple[str, int], one: Construction) -> bool:
    """Whether the settings of ``one`` are about the time at a line."""
    if not one.packages:
        return True
    cost = context.cost(*place)
    if cost is None or not in_library(cost):
        return False
    spent = sum(each.step_ms for each in cost.inside if _of(each.file, one.packages))
    return spent >= LEAST_SHARE * cost.step_ms


def in_library(cost: LineCost) -> bool:
    """Whether a line's time is mostly in a library's code."""
    return bool(cost.inside) and sum(each.step_ms for each in cost.inside) >= LEAST_SHARE * cost.step_ms


def goes_through_again(context: Context, place: tuple[str, int]) -> bool:
    """Whether a framework runs several epochs below that line, as a recorded call was told."""
    cost = context.cost(*place)
    for one in constructions():
        runs = cost is not None and any(_of(each.file, one.owned) for each in cost.inside)
        for site in made_by(context, one) if runs and one.epochs else ():
            given = {each.name: each.value for each in site.arguments if each.passed} | values_of(site)
            epochs = given.get(one.epochs)
            if isinstance(epochs, (int, float)) and (epochs > 1 or epochs < 0):
                return True
    return False


def _of(file: str, packages: tuple[str, ...]) -> bool:
    parts = file.replace("\\", "/").split("/")
    return any(package in parts for package in packages)


def applies(context: Context, site: Site, setting: Setting) -> bool:
    """Whether the conditions on values hold, without which the setting is not offered."""
    values = {one.name: one.value for one in site.arguments if one.passed}
    values.update(values_of(site))
    if any(values.get(name) not in wanted for name, wanted in setting.only):
        return False
    # The framework has other functions for the same, with arguments of their own.
    if setting.functions and not any(spent_in(cost, setting.functions) for cost in context.profile.lines):
        return False
    if setting.functions and setting.only and not _takes(site, setting):
        return False
    if setting.frozen and not _adapts(context, setting.frozen):
        return False
    if "tf32" in setting.arguments and context.profile.facts.flags.allow_tf32:
        return False  # compiling allows it as well
    return not setting.inference or not any(cost.backward_ms for cost in context.profile.lines)


def spent_in(cost: LineCost, functions: Collection[str]) -> float:
    """Milliseconds a step of a line in functions of a library, by their names, with or without the class."""
    return sum(
        each.step_ms
        for each in cost.inside
        if each.function in functions or each.function.rpartition(".")[2] in functions
    )


def _takes(site: Site, setting: Setting) -> bool:
    """Whether the call has all of the setting's arguments in the installed version."""
    return set(setting.arguments) <= set(facts_of(Framework, site).parameters or ())


def is_set(site: Site, setting: Setting) -> bool:
    """Whether the call got all that the setting would pass, whatever its text says."""
    values = values_of(site)
    return bool(setting.arguments) and all(
        _is(values.get(name), code) for name, code in setting.arguments.items()
    )


def grouped_by_length(context: Context) -> bool:
    """Whether a framework was told to put rows of similar length into a batch."""
    return any(
        setting.rule == "padded-batches" and is_set(site, setting)
        for one in constructions()
        for site in made_by(context, one)
        for setting in one.settings
    )


def _is(value: object, code: str) -> bool:
    """Whether a recorded value is what ``code`` says, a number or a word."""
    try:
        return value is not None and bool(value == ast.literal_eval(code))
    except (ValueError, SyntaxError):
        return False


def _adapts(context: Context, package: str) -> bool:
    """Whether the steps train what a package adds to a model, and few of its own weights."""
    flow = context.profile.facts.dataflow
    held = [facts_of(Optimizer, site).elements for site in context.sites("optimizer")]
    weights = sum(prod(flow.shapes[flow.shape[one]]) for one in set(flow.parameters))
    trained = sum(each or 0 for each in held)
    runs = any(_of(each.file, (package,)) for cost in context.profile.lines for each in cost.inside)
    return runs and 0 < trained <= MOST_TRAINED * weights


def clipped_in_half(context: Context) -> str:
    """Why an optimizer must not be fused: a framework's setting would raise with that. Else ""."""
    for one in constructions():
        for site in made_by(context, one):
            values = values_of(site)
            for setting in one.settings:
                clips = next((word for word in setting.unfused if values.get(word)), "")
                if clips and is_set(site, setting):
                    return f"`{clips}` of `{one.name}` raises for a fused optimizer in half precision"
    return ""


def made_by(context: Context, one: Construction) -> list[Site]:
    """Where the script constructed it."""
    return [site for site in context.sites("framework") if facts_of(Framework, site).construction == one.key]
