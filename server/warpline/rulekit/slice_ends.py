"""Slices of the first dimension that the turns of a loop number, and their size."""

from __future__ import annotations

import libcst as cst

from warpline.syntax.source import Source

Loop = cst.For | cst.CompFor


def multiples(source: Source, loop: Loop) -> list[cst.BaseExpression]:
    """The size in slices of the first dimension that a loop numbers, ``[i * size : (i + 1) * size]``."""
    body = source.parent(loop) if isinstance(loop, cst.CompFor) else loop
    sizes = (_multiple(source, part, loop) for part in first_slices(source, body))
    return [size for size in sizes if size is not None]


def first_slices(source: Source, body: cst.CSTNode | None) -> list[cst.Slice]:
    return [part for part in source.nodes(cst.Slice, within=body) if is_first(source, part)]


def is_first(source: Source, part: cst.Slice) -> bool:
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
    if isinstance(end, cst.Call) and source.name(end.func) == "min":
        found = (ends_after(source, arg.value, step) for arg in end.args)
        return next((one for one in found if one is not None), None)
    if not isinstance(end, cst.BinaryOperation) or not isinstance(end.operator, cst.Add):
        return None
    sides = (one for one in (end.left, end.right) if source.code(one) == source.code(step))
    return next(sides, None)


def _multiple(source: Source, part: cst.Slice, loop: Loop) -> cst.BaseExpression | None:
    """``size`` of ``[at * size : (at + 1) * size]``, a name. The ends may have names:
    ``start : start + size``."""
    at = source.code(loop.target)
    begin, end = (meant(source, one, loop) for one in (part.lower, part.upper))
    low, high = _factors(begin), _factors(end)
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


def _factors(end: cst.BaseExpression | None) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    if isinstance(end, cst.BinaryOperation) and isinstance(end.operator, cst.Multiply):
        return end.left, end.right
    return None
