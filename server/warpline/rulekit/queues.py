"""Batches that a step takes off a queue, at most so many entries at a time, or as the next rows of an array:
where that number is written."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.origins import origin, overridden
from warpline.rulekit.slice_ends import is_first
from warpline.rulekit.slicing import ONCE, Slices
from warpline.syntax.source import Source

_TAKES = ("popleft", "pop", "get", "get_nowait")
_LENGTHS = ("len", "qsize")
#: Operators whose first argument has a row for each entry of a batch.
_ON_ROWS = ("aten::linear", "aten::matmul", "aten::conv1d", "aten::conv2d", "aten::conv3d")

_Around = cst.ListComp | cst.GeneratorExp | cst.For | cst.While


def taken(context: Context) -> Iterator[Slices]:
    """Where the most that a step takes off a queue is written, if each recorded step took as many: its layers
    had so many rows. Only where a larger number takes what there is: of ``range(min(size, len(queue)))``, of
    a loop that ends where the queue is empty, and of ``queue[:size]``, which the queue loses. And where a
    generator gathers so many, or each call of a function cuts the next rows out of an array."""
    rows = rows_of(context)
    seen: set[tuple[str, int]] = set()
    for source, most in (*_one_by_one(context), *_cut(context), *_gathered(context), *_next_rows(context)):
        found = origin(context, source, most)
        size = found.source.literal(found.node) if found.editable else None
        if type(size) is int and size in rows and found.place not in seen and not overridden(context, found):
            seen.add(found.place)
            yield Slices(found, source)


def rows_of(context: Context) -> set[int]:
    """The numbers of rows that the steps' layers had."""
    return {
        op.shapes[0][0]
        for cost in context.profile.lines
        for op in cost.ops
        if op.name in _ON_ROWS and op.phase == "forward" and op.shapes and op.shapes[0]
    }


def _one_by_one(context: Context) -> Iterator[tuple[Source, cst.BaseExpression]]:
    for source, call in context.calls(*_TAKES):
        if not _takes(source, call):
            continue
        loop = source.enclosing(call, cst.ListComp, cst.GeneratorExp, cst.For, cst.While)
        if loop is None or not _ran(context, source, call, loop):
            continue
        most = None
        if isinstance(loop, cst.While):
            most = _of_while(source, loop)
        elif isinstance(loop, (cst.ListComp, cst.GeneratorExp, cst.For)):
            most = _of_range(source, loop)
        if most is not None:
            yield source, most


def _takes(source: Source, call: cst.Call) -> bool:
    """Whether it is a call of a queue's or a list's, and not ``options.get(name)``."""
    plain = [source.literal(arg.value) for arg in call.args if arg.keyword is None]
    return isinstance(call.func, cst.Attribute) and (not plain or plain in ([0], [False]))


def _ran(context: Context, source: Source, *nodes: cst.CSTNode) -> bool:
    """Whether a step ran one of their lines: of a loop of plain Python only the first may be recorded."""
    return any(context.cost(*source.place(node)) is not None for node in nodes)


def _of_range(source: Source, loop: cst.ListComp | cst.GeneratorExp | cst.For) -> cst.BaseExpression | None:
    """``size`` of ``range(min(size, len(queue)))``, or of ``range(size)`` where the loop may end early."""
    over = loop.iter if isinstance(loop, cst.For) else loop.for_in.iter
    if not isinstance(over, cst.Call) or source.name(over.func) != "range" or len(over.args) != 1:
        return None
    end = over.args[0].value
    if not isinstance(end, cst.Call):
        return end if _ends_early(source, loop) else None
    given = [arg.value for arg in end.args]
    others = [one for one in given if not _is_length(source, one)]
    least = source.name(end.func) == "min" and len(given) == 2 and len(others) == 1
    return others[0] if least else None


def _of_while(source: Source, loop: cst.While) -> cst.BaseExpression | None:
    """``size`` of ``while queue and len(batch) < size``, or of ``len(batch) < size`` where the loop may end
    early."""
    tests = [loop.test]
    if isinstance(loop.test, cst.BooleanOperation) and isinstance(loop.test.operator, cst.And):
        tests = [loop.test.left, loop.test.right]
    elif not _ends_early(source, loop):
        return None
    sizes = [
        test.comparisons[0].comparator
        for test in tests
        if isinstance(test, cst.Comparison)
        and len(test.comparisons) == 1
        and isinstance(test.comparisons[0].operator, cst.LessThan)
        and _is_length(source, test.left)
    ]
    return sizes[0] if len(sizes) == 1 else None


def _is_length(source: Source, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and source.is_named(node.func, *_LENGTHS)


def _ends_early(source: Source, loop: _Around) -> bool:
    around = source.enclosing(loop, cst.Try, cst.FunctionDef)
    ends = bool(source.nodes(cst.Break, within=loop)) or isinstance(around, cst.Try)
    return ends and isinstance(loop, (cst.For, cst.While))


def _cut(context: Context) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """``size`` of ``queue[:size]``, beside ``queue = queue[size:]`` or ``del queue[:size]``."""
    for source in context.sources():
        for part in source.nodes(cst.Subscript):
            cut = part.slice[0].slice if len(part.slice) == 1 else None
            if not isinstance(cut, cst.Slice) or cut.lower is not None or cut.upper is None:
                continue
            queue, size, scope = source.code(part.value), source.code(cut.upper), source.scope(part)
            rest = [source.code(one) for one in source.values(queue, scope)]
            gone = [source.code(one.target) for one in source.nodes(cst.Del, within=scope)]
            lost = f"{queue}[{size}:]" in rest or f"{queue}[:{size}]" in gone
            if lost and not isinstance(source.parent(part), cst.Del) and _ran(context, source, part):
                yield source, cut.upper


def _gathered(context: Context) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """``size`` of ``if len(batch) == size: yield batch``."""
    for source in context.sources():
        for branch in source.nodes(cst.If):
            test, given = branch.test, source.nodes(cst.Yield, within=branch.body)
            if not given or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
                continue
            target = test.comparisons[0]
            full = isinstance(target.operator, (cst.Equal, cst.GreaterThanEqual))
            if full and _is_length(source, test.left) and _ran(context, source, branch, *given):
                yield source, target.comparator


def _next_rows(context: Context) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """``size`` of ``self.at += size; return rows[start : self.at]``, and of ``rows[at : at + size]``, where
    each step calls the function once."""
    for source in context.sources():
        for part in source.nodes(cst.Slice):
            function, cost = source.enclosing(part, cst.FunctionDef), context.cost(*source.place(part))
            ahead = part.lower is not None and part.upper is not None and is_first(source, part)
            inner = source.loops(part) or source.enclosing(part, cst.ListComp, cst.GeneratorExp)
            once = cost is not None and abs(cost.calls - 1) <= ONCE
            if function is not None and part.upper is not None and ahead and once and not inner:
                yield from ((source, one) for one in _added(source, function, part.upper))


def _added(
    source: Source, function: cst.FunctionDef, end: cst.BaseExpression
) -> Iterator[cst.BaseExpression]:
    """What may be the length of a slice up to ``end``: both sides of ``at + size``, and what ``function``
    adds to ``end``."""
    code = source.code(end)
    given = [one for one in source.assigned(code, function) if not isinstance(one, cst.Name)]
    for value in [end] if isinstance(end, cst.BinaryOperation) else given:
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            yield from (value.left, value.right)
    for one in source.nodes(cst.AugAssign, within=function):
        if isinstance(one.operator, cst.AddAssign) and source.code(one.target) == code:
            yield one.value
