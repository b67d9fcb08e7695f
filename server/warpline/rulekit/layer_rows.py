"""Layers that a script puts in a row: which one comes directly after another one, by the text."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.terms import descend
from warpline.syntax.source import Source, is_method

#: Of a layer that has a name, reading this changes nothing.
_READ_ONLY = "weight"


def is_before(source: Source, call: cst.Call, *names: str) -> bool:
    """Whether the layer that ``call`` makes stands before one of ``names`` wherever it stands: in a
    Sequential, a list, or what is appended to one; both by themselves or by a local name."""
    assign = source.parent(call)
    if not isinstance(assign, cst.Assign):
        return _is_followed(source, call, names)
    function, target = source.enclosing(call, cst.FunctionDef), assign.targets[0].target
    if function is None or not isinstance(target, cst.Name):
        return False
    uses = source.uses(target.value, function)
    stands = [one for one in uses if one is not target and not _is_read(source, one)]
    only = len(source.assigned(target.value, within=function)) == 1
    return only and bool(stands) and all(_is_followed(source, one, names) for one in stands)


def _is_read(source: Source, name: cst.Name) -> bool:
    above = source.parent(name)
    return isinstance(above, cst.Attribute) and above.value is name and above.attr.value == _READ_ONLY


def _is_followed(source: Source, node: cst.BaseExpression, names: tuple[str, ...]) -> bool:
    after = _next(source, node)
    if isinstance(after, cst.Name):
        function = source.enclosing(after, cst.FunctionDef)
        made = source.assigned(after.value, within=function) if function is not None else []
        after = made[0] if len(made) == 1 else None
    return isinstance(after, cst.Call) and source.is_named(after.func, *names)


def _next(source: Source, node: cst.BaseExpression) -> cst.BaseExpression | None:
    holder = source.parent(node)
    row = source.parent(holder) if isinstance(holder, (cst.Arg, cst.Element)) else None
    if isinstance(row, cst.Call) and source.is_named(row.func, "Sequential"):
        values = [arg.value for arg in row.args]
    elif isinstance(row, (cst.List, cst.Tuple)):
        values = [element.value for element in row.elements]
    elif isinstance(row, cst.Call) and is_method(row, "append"):
        return _appended_after(source, row)
    else:
        return None
    index = values.index(node)
    return values[index + 1] if index + 1 < len(values) else None


def _appended_after(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """What the next statement appends to the same list."""
    statement = source.statement(call)
    block = source.block(call)
    index = block.index(statement) if statement in block else len(block)
    following = block[index + 1] if index + 1 < len(block) else None
    if not isinstance(following, cst.SimpleStatementLine):
        return None
    for other in descend(following, cst.Call):
        if is_method(other, "append") and source.code(other.func) == source.code(call.func) and other.args:
            appended: cst.BaseExpression = other.args[0].value
            return appended
    return None
