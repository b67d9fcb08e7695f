"""Lines that make, outside torch, tensors that are the same in each step: of NumPy's arrays, or of lists."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import Function, below
from warpline.rulekit.constants import is_constant
from warpline.rulekit.context import Context
from warpline.rulekit.drawn import draws
from warpline.rulekit.graph.constants import constant_values
from warpline.rulekit.graph.graph import Graph
from warpline.rulekit.terms import descend, function_at, names_in
from warpline.syntax.source import Source, Statement
from warpline.wire.dataflow import DIRECT, MODULE

#: What makes a tensor of an array or of a list.
_MAKERS = ("from_numpy", "tensor", "as_tensor", "asarray", "Tensor", "FloatTensor", "DoubleTensor")


def made_outside(context: Context, graph: Graph) -> dict[Function, dict[LineCost, list[LineCost]]]:
    """The lines that do nothing but make such tensors, by the function that reads these, each with those
    below it."""
    constant = constant_values(graph)

    def is_plain(lines: list[LineCost]) -> bool:
        return all(is_constant(node, constant) for line in lines for node in graph.at(line.place))

    found: dict[Function, dict[LineCost, list[LineCost]]] = {}
    for node in (node for value in graph.flow.remade for node in graph.consumers.get(value, ())):
        site = graph.site(node)
        if site is None or site.via not in (DIRECT, MODULE):
            continue
        source = context.source(site.file)
        reader = source.statement_at(site.line)
        if not isinstance(reader, cst.SimpleStatementLine):
            continue
        makers = _makers(source, reader)
        if any(draws(source, statement) for statement in (reader, *makers)):
            continue  # the next step may have drawn the same by chance
        own = found.setdefault((site.file, site.function), {})
        for statement in makers:
            for cost in context.costs_of(source, statement):
                lines = below(context, cost)
                if cost.calls >= 1 and is_plain(lines):
                    own[cost] = lines
        for cost in context.costs_of(source, reader):
            lines = [line for line in below(context, cost) if line != cost and _makes(context, line)]
            if lines and is_plain(lines):
                own[cost] = lines
    return found


def _makers(source: Source, reader: cst.SimpleStatementLine) -> list[Statement]:
    """The statements above ``reader`` in its function that give something to the names that it reads, and to
    those that these read, and the loops around them; without those that anything else reads."""
    scope = source.scope(reader)
    above = [
        line
        for line in source.nodes(cst.SimpleStatementLine, within=scope)
        if source.scope(line) is scope and source.line(line) < source.line(reader)
    ]
    found: dict[Statement, set[str]] = {}
    waiting: list[Statement] = [reader]
    while waiting:
        read = names_in(waiting.pop())
        for line in above:
            given = _given(line)
            if given & read and line not in found:
                found[line] = given
                waiting.append(line)
    while others := [one for one, given in found.items() if _is_read_beside(source, reader, given, found)]:
        for one in others:
            del found[one]
    around = {loop: None for line in found for loop in source.loops(line) if not source.inside(reader, loop)}
    return [*found, *around]


def _given(line: cst.SimpleStatementLine) -> set[str]:
    """Names that a statement gives something: as a whole, an entry, or by a method."""
    targets = [one.target for one in descend(line, cst.AssignTarget, cst.AnnAssign, cst.AugAssign)]
    calls = [
        one.value.func for one in line.body if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call)
    ]
    targets += [func.value for func in calls if isinstance(func, cst.Attribute)]
    found = set[str]()
    while targets:
        target = targets.pop()
        if isinstance(target, (cst.Tuple, cst.List)):
            targets += [one.value for one in target.elements]
        elif isinstance(target, cst.Subscript):
            targets.append(target.value)
        elif isinstance(target, cst.Name):
            found.add(target.value)
    return found


def _is_read_beside(
    source: Source, reader: cst.SimpleStatementLine, names: set[str], makers: Collection[Statement]
) -> bool:
    """Whether more than the ``makers`` and the ``reader`` reads one of ``names``. Where the reader gives it
    another value, what comes later reads that."""
    again, last, scope = _given(reader), source.extent(reader)[-1], source.scope(reader)
    reads = [one for name in names for one in source.reads(name, scope) if not _is_local(source, one, scope)]
    reads = [one for one in reads if one.value not in again or source.line(one) <= last]
    return any(not any(source.inside(one, line) for line in (*makers, reader)) for one in reads)


def _is_local(source: Source, name: cst.Name, scope: cst.CSTNode) -> bool:
    """Whether a function inside ``scope`` has another variable of that name."""
    own = source.scope(name)
    return own is not scope and any(map(source.binds, source.uses(name.value, own)))


def _makes(context: Context, cost: LineCost) -> bool:
    """Whether the line is in a function that makes a tensor of an array or of a list."""
    source = context.source(cost.file)
    function = function_at(source, cost.line)
    calls = source.nodes(cst.Call, within=function) if function is not None else []
    return any(source.is_named(call.func, *_MAKERS) for call in calls)
