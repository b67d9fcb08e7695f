"""Slices of the first dimension that the turns of a loop number, and their size."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from warpline.syntax.source import Source

Loop = cst.For | cst.CompFor


class Ends(NamedTuple):
    lower: cst.BaseExpression | None
    upper: cst.BaseExpression | None


def multiples(source: Source, loop: Loop) -> list[cst.BaseExpression]:
    """The size in slices of the first dimension that a loop numbers, ``[i * size : (i + 1) * size]``."""
    body = source.parent(loop) if isinstance(loop, cst.CompFor) else loop
    sizes = (_multiple(source, part, loop) for part in first_slices(source, body))
    return [size for size in sizes if size is not None]


def first_slices(source: Source, body: cst.CSTNode | None) -> list[Ends]:
    """The ends of slices of the first dimension, also of ``slice(begin, end)``."""
    written = [part for part in source.nodes(cst.Slice, within=body) if is_first(source, part)]
    made = [call for call in source.nodes(cst.Call, within=body) if _makes_first(source, call, body)]
    return [
        *(Ends(part.lower, part.upper) for part in written),
        *(Ends(call.args[0].value, call.args[1].value) for call in made),
    ]


def _makes_first(source: Source, call: cst.Call, body: cst.CSTNode | None) -> bool:
    """Whether a call is ``slice(begin, end)`` for the first dimension of all that it is taken of: there, or
    by a name."""
    if source.name(call.func) != "slice" or len(call.args) != 2:
        return False
    statement = source.parent(call)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    used: list[cst.CSTNode | None] = [source.parent(call)]
    if isinstance(target, cst.Name):
        names = source.nodes(cst.Name, within=body)
        used = [source.parent(one) for one in names if one.value == target.value and one is not target]
    return bool(used) and all(isinstance(one, cst.Index) and is_first(source, one) for one in used)


def is_first(source: Source, part: cst.Slice | cst.Index) -> bool:
    """Whether it is of the first dimension: ``[:, at : at + size]`` takes a piece of each sample."""
    element = source.parent(part)
    outer = source.parent(element) if element is not None else None
    return isinstance(outer, cst.Subscript) and outer.slice[0] is element


def meant(
    source: Source, end: cst.BaseExpression | None, body: cst.CSTNode | None
) -> cst.BaseExpression | None:
    """The end of a slice. A name that the loop assigns once stands for its value: ``end = at + size``."""
    given = source.assigned(end.value, within=body) if isinstance(end, cst.Name) else []
    return given[0] if len(given) == 1 else end


def ends_after(
    source: Source, end: cst.BaseExpression | None, step: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The ``size`` of ``at + size``, or of ``min(at + size, count)``, where it is ``step``."""
    end = _least(source, end)
    if not isinstance(end, cst.BinaryOperation) or not isinstance(end.operator, cst.Add):
        return None
    sides = (one for one in (end.left, end.right) if source.code(one) == source.code(step))
    return next(sides, None)


def begins_before(source: Source, part: Ends, step: cst.BaseExpression, at: str) -> cst.BaseExpression | None:
    """The ``size`` of ``[at - size : at]`` where it is ``step``."""
    begin, end = part
    if not isinstance(begin, cst.BinaryOperation) or not isinstance(begin.operator, cst.Subtract):
        return None
    ends_here = end is not None and source.code(end) == source.code(begin.left) == at
    return begin.right if ends_here and source.code(begin.right) == source.code(step) else None


def _multiple(source: Source, part: Ends, loop: Loop) -> cst.BaseExpression | None:
    """``size`` of ``[at * size : (at + 1) * size]``, a name. The ends may have names:
    ``start : start + size``."""
    at = source.code(loop.target)
    begin, end = (meant(source, one, loop) for one in (part.lower, part.upper))
    low, high = _factors(begin), _factors(_least(source, end))
    if low is None:
        return None
    for number, size in (low, low[::-1]):
        if source.code(number) != at or not isinstance(size, (cst.Name, cst.Attribute)):
            continue
        pairs = (high, high[::-1]) if high is not None else ()
        after = [one for one, other in pairs if source.code(other) == source.code(size)]
        if any(source.code(one).strip("()") in (f"{at} + 1", f"1 + {at}") for one in after):
            return size
        if begin is not part.lower and ends_after(source, end, size) is not None:
            return size
    return None


def _least(source: Source, end: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """The computed end in ``min(end, count)``, which ends the last batch; else ``end`` itself."""
    if not isinstance(end, cst.Call) or source.name(end.func) != "min":
        return end
    return next((arg.value for arg in end.args if isinstance(arg.value, cst.BinaryOperation)), end)


def _factors(end: cst.BaseExpression | None) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    if isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.Multiply):
        return end.left, end.right
    return None
