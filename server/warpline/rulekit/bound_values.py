"""What the text of a file gives a name that a loop, a comprehension or a caller binds."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.origins import called_as, parameters
from warpline.rulekit.terms import descend
from warpline.syntax.source import Source, called_name

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
#: Names of names that are followed: chosen, so that a circle ends.
_DEPTH = 4


def values_of(source: Source, value: cst.BaseExpression, depth: int = _DEPTH) -> list[cst.BaseExpression]:
    """The expressions that ``value`` may stand for: the elements of what a loop goes over, the arguments of
    all calls in the file; ``value`` itself where nothing is followed."""
    found: list[cst.BaseExpression] | None = None
    if isinstance(value, (cst.Tuple, cst.List)):
        found = [one.value for one in value.elements]
    elif isinstance(value, cst.Name):
        found = _bound(source, value)
        made = source.assigned(value.value, within=source.scope(value))
        if found is None and len(made) == 1 and isinstance(made[0], (cst.Tuple, cst.List)):
            found = [made[0]]
    if not found or not depth:
        return [value]
    return [inner for one in found for inner in values_of(source, one, depth - 1)]


def _bound(source: Source, name: cst.Name) -> list[cst.BaseExpression] | None:
    """What binds the name, innermost first; None for an assignment, or where that is not known."""
    inner: cst.CSTNode = name
    for outer in source.ancestors(name):
        turns: list[cst.For | cst.CompFor] = []
        if isinstance(outer, _COMPREHENSIONS):
            turns = [*descend(outer.for_in, cst.CompFor)]
        elif isinstance(outer, cst.For) and inner is outer.body:
            turns = [outer]
        for turn in turns:
            targets = source.nodes(cst.Name, within=turn.target)
            if any(one.value == name.value for one in targets) and not source.inside(name, turn.iter):
                return _elements(source, turn, name.value)
        if isinstance(outer, cst.FunctionDef):
            assigned = source.assigned(name.value, within=outer)
            return None if assigned else _passed(source, outer, name.value)
        inner = outer
    return None


def _elements(source: Source, turn: cst.For | cst.CompFor, name: str) -> list[cst.BaseExpression] | None:
    """What ``name`` is an element of: the iterable of the loop, or the one of ``zip`` or ``enumerate``."""
    if isinstance(turn.target, cst.Name):
        return [turn.iter]
    if not isinstance(turn.target, cst.Tuple) or not isinstance(turn.iter, cst.Call):
        return None
    names = [source.code(one.value) for one in turn.target.elements]
    args = [arg.value for arg in turn.iter.args]
    if name in names and called_name(turn.iter) == "zip" and len(args) == len(names):
        return [args[names.index(name)]]
    return args[:1] if called_name(turn.iter) == "enumerate" and names[1:] == [name] else None


def _passed(source: Source, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression] | None:
    """What the calls in the file pass for a parameter, also one such as ``*arrays``."""
    params, order = function.params, parameters(function)
    calls = source.calls_of(called_as(source, function))
    if isinstance(params.star_arg, cst.Param) and params.star_arg.name.value == name:
        return [arg.value for call in calls for arg in call.args[len(order) :] if arg.keyword is None]
    if name not in (*order, *(one.name.value for one in params.kwonly_params)):
        return None
    position = order.index(name) if name in order else None
    given = [source.argument(call, name, position) for call in calls]
    return [arg.value for arg in given if arg is not None]
