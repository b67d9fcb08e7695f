"""Batches that a script slices itself, in a loop with one turn a step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.origins import Origin, origin, overridden
from warpline.syntax.source import Source

#: Lines of a loop that has one turn a step run as often; a partial step more or less at the window's ends.
_ONCE = 0.5


def sliced(context: Context) -> Iterator[Origin]:
    """Where the size is written of a loop over ``range(0, count, size)`` with ``[at : at + size]`` in it, or
    over ``tensor.split(size)``.

    Only of loops with one turn a step. Sizes that are no plain number, cannot be followed, or are the default
    of an option that the command line gives another value, are left out.
    """
    seen: set[tuple[str, int]] = set()
    for cost in context.profile.lines:
        source = context.source(cost.file)
        statement = source.statement_at(cost.line)
        if statement is None or abs(cost.calls - 1) > _ONCE:
            continue
        for loop in source.loops(statement)[:1]:
            step = _step(source, loop)
            if step is None:
                continue
            found = origin(context, source, step)
            if overridden(context, found) is not None:
                continue
            size = found.source.literal(found.node) if found.editable else None
            if type(size) is int and size > 0 and found.place not in seen:
                seen.add(found.place)
                yield found


def _step(source: Source, loop: cst.For | cst.While) -> cst.BaseExpression | None:
    for call in source.nodes(cst.Call, within=loop.iter) if isinstance(loop, cst.For) else ():
        if source.is_named(call.func, "split") and call.args:
            dim = source.argument(call, "dim", 1)
            return call.args[0].value if dim is None or source.literal(dim.value) == 0 else None
        if source.is_named(call.func, "range") and len(call.args) == 3:
            step = call.args[2].value
            if any(_ends_after(source, part, step) for part in source.nodes(cst.Slice, within=loop)):
                return step
    return None


def _ends_after(source: Source, part: cst.Slice, step: cst.BaseExpression) -> bool:
    """``[at : at + size]`` of the first dimension: ``[:, at : at + size]`` takes a piece of each sample."""
    end, element = part.upper, source.parent(part)
    outer = source.parent(element) if element is not None else None
    return (
        isinstance(outer, cst.Subscript)
        and outer.slice[0] is element
        and isinstance(end, cst.BinaryOperation)
        and isinstance(end.operator, cst.Add)
        and source.code(step) in (source.code(end.left), source.code(end.right))
    )
