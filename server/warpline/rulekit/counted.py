"""Whole numbers that each step changes and that code reads which would be compiled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.terms import function_at
from warpline.rulekit.waiting import counter
from warpline.syntax.source import Source
from warpline.wire.sites import Module, facts_of


def changing_number(context: Context, costs: Iterable[LineCost]) -> str | None:
    """The name of such a number that the functions with these lines read, as an attribute in a module's
    method or as a global; else None.

    torch.compile takes both for constants, and compiles again for each value, eight times; then it gives up.
    Whole numbers that are passed, or that a plain object has, and all others than whole ones it takes for
    variables from the second value on (counted with torch 2.13).
    """
    found = {(cost.file, function_at(context.source(cost.file), cost.line)) for cost in costs}
    functions = [(context.source(file), function) for file, function in found if function is not None]
    modules = _module_classes(context)
    owners = (source.enclosing(function, cst.ClassDef) for source, function in functions)
    method = any(owner is not None and owner.name.value in modules for owner in owners)
    for source, name, attribute in _changed(context):
        for other, function in functions if method or not attribute else ():
            if attribute:
                read = any(one.attr.value == name for one in other.nodes(cst.Attribute, within=function))
            else:
                read = other is source and _reads_global(other, function, name)
            if read:
                return name
    return None


def _changed(context: Context) -> Iterator[tuple[Source, str, bool]]:
    """Attributes (True, by their last name) and globals that a line of each step adds a whole number to, and
    counters of loops outside functions."""
    for cost, source, statement in context.each_step:
        outside = source.enclosing(statement, cst.FunctionDef) is None
        loop = counter(source, statement) if outside else None
        if loop is not None:
            yield source, loop[0], False
        for small in statement.body if not cost.ops and not cost.launches else ():
            target = _counts(source, small)
            if isinstance(target, cst.Attribute):
                yield source, target.attr.value, True
            elif target is not None and (outside or _is_global(source, statement, target.value)):
                yield source, target.value, False


def _counts(source: Source, small: cst.BaseSmallStatement) -> cst.Attribute | cst.Name | None:
    """What ``x.seen += 1`` or ``x.seen = x.seen + 1`` gives another whole number."""
    if isinstance(small, cst.AugAssign):
        target, value, whole = small.target, small.value, not isinstance(small.operator, cst.DivideAssign)
    elif isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
        kept = source.code(target)
        whole = isinstance(value, cst.BinaryOperation) and kept in map(source.code, (value.left, value.right))
    else:
        return None
    if not whole or not isinstance(target, (cst.Attribute, cst.Name)):
        return None
    return None if source.nodes(cst.Float, cst.Divide, cst.List, within=value) else target


def _is_global(source: Source, statement: cst.CSTNode, name: str) -> bool:
    function = source.enclosing(statement, cst.FunctionDef)
    said = source.nodes(cst.Global, within=function) if function is not None else []
    return any(item.name.value == name for one in said for item in one.names)


def _reads_global(source: Source, function: cst.FunctionDef, name: str) -> bool:
    own = {param.name.value for param in source.nodes(cst.Param, within=function)}
    own |= {
        one.target.value
        for one in source.nodes(cst.AssignTarget, within=function)
        if isinstance(one.target, cst.Name)
    }
    return name not in own and bool(source.uses(name, function))


def _module_classes(context: Context) -> set[str]:
    """Names of the classes of the script's modules, and of those that these inherit from."""
    found = {str(facts_of(Module, site).type).rpartition(".")[2] for site in context.sites("module")}
    waiting = list(found)
    while waiting:
        for source, owner in context.classes(waiting.pop()):
            fresh = {source.code(base.value).rpartition(".")[2] for base in owner.bases} - found
            found |= fresh
            waiting += fresh
    return found
