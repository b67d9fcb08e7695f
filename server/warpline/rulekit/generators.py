"""Generators of random numbers on the host that fill nothing but a tensor of the device's."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.constants import related
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.imports import imported_names
from warpline.syntax.source import Source, is_method, receiver

_BY_HAND = "its generator is the host's: make a `torch.Generator` of the device"
_SEEDS = ("manual_seed", "seed", "initial_seed")


def of_device(context: Context, edits: Edits, call: cst.Call, device: str) -> None:
    """Make the generator that ``call`` takes, if it takes one, on ``device`` (as code). Raises Refused where
    anything else may draw from it, or ``device`` may be another one where it is made."""
    source, given = edits.source, edits.source.argument(call, "generator")
    if given is None:
        return
    uses = _uses(context, source, given.value)
    bound = [one for one in uses if source.binds(one)]
    made = source.given(bound[0]) if len(bound) == 1 else None
    while is_method(made, "manual_seed"):
        made = receiver(made)
    others = [one for one in uses if one not in (*bound, given.value) and not _seeds(source, one)]
    plain = isinstance(made, cst.Call) and source.name(made.func) == "torch.Generator" and not made.args
    if others or not plain or not isinstance(made, cst.Call) or not _known(source, device, made, call):
        raise Refused(_BY_HAND)
    edits.set_argument(made, "device", device)


def _uses(context: Context, source: Source, node: cst.BaseExpression) -> list[cst.Name] | list[cst.Attribute]:
    """Where a function's own name, or an object's own attribute, is read or given. Raises Refused for others,
    and where other code may have it."""
    if isinstance(node, cst.Name):
        return source.uses(node.value, source.scope(node))
    owner = source.enclosing(node, cst.ClassDef)
    if not isinstance(node, cst.Attribute) or source.code(node.value) != "self" or owner is None:
        raise Refused(_BY_HAND)
    found: list[cst.Attribute] = []
    for other in context.sources():
        modules = imported_names(other.nodes(cst.Import), other.nodes(cst.ImportFrom))
        for one in other.nodes(cst.Attribute):
            if one.attr.value != node.attr.value or other.code(one).partition(".")[0] in modules:
                continue
            own = other.code(one.value) == "self"
            if own and not related(other.enclosing(one, cst.ClassDef), owner):
                continue
            if not own or other is not source:
                raise Refused(_BY_HAND)
            found.append(one)
    return found


def _seeds(source: Source, one: cst.CSTNode) -> bool:
    above = source.parent(one)
    return isinstance(above, cst.Attribute) and above.value is one and above.attr.value in _SEEDS


def _known(source: Source, device: str, made: cst.Call, used: cst.Call) -> bool:
    """Whether ``device``, as the function of ``used`` reads it, was given before ``made``, and only there."""
    function, own = source.enclosing(made, cst.FunctionDef), device.startswith("self.")
    if device[0] in "\"'":
        return True
    if not own and source.enclosing(used, cst.FunctionDef) is not function:
        return function is not None and source.constant(device) is not None
    scope = source.enclosing(made, cst.ClassDef) if own else function
    bound = source.bindings(device, scope)
    if len(bound) != 1 or source.enclosing(bound[0], cst.FunctionDef) is not function:
        return False
    before = source.statement(bound[0]) in source.block(made) and source.line(bound[0]) < source.line(made)
    return before or isinstance(source.parent(bound[0]), cst.Param)
