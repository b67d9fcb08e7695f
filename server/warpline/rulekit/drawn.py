"""What a step draws at random: where the number of samples is written, and what is chosen by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph
from warpline.rulekit.holders import argument
from warpline.rulekit.origins import origin, overridden
from warpline.rulekit.queues import rows_of
from warpline.rulekit.slicing import ONCE, Slices
from warpline.rulekit.terms import names_in
from warpline.syntax.source import Source, Statement, called_name

#: Name and position of the number of samples in calls that draw them; the last ones are NumPy's.
_DRAWS = {
    "random.sample": ("k", 1),
    "random.choices": ("k", 3),
    "choice": ("size", 1),
    "integers": ("size", 2),
    "numpy.random.randint": ("size", 2),
}
#: Calls of random, NumPy and torch that draw numbers to choose by.
_NUMBERS = frozenset({
    "choice", "choices", "sample", "randint", "integers", "randrange", "permutation", "randperm", "random",
    "uniform",
})  # fmt: skip


def drawn(context: Context) -> Iterator[Slices]:
    """Where the number of samples is written that a step draws, if its layers had so many rows, or one draw
    of several, if all draws together have: ``torch.randint(count, (size,))``,
    ``torch.randperm(count)[:size]``, ``random.sample(rows, size)`` and NumPy's ``choice``,
    ``randint`` and ``integers``."""
    rows, seen = rows_of(context), set[tuple[str, int]]()
    for source, call in context.calls("torch.randint", "torch.randperm", *_DRAWS):
        cost = context.cost(*source.place(call))
        size = drawn_size(source, call)
        if size is None or cost is None or cost.calls < ONCE:
            continue
        found, draws = origin(context, source, size), round(cost.calls) or 1
        number = found.source.literal(found.node) if found.editable else None
        if type(number) is not int or draws * number not in rows:
            continue
        if draws > 1 and draws in rows and not _is_of_sampler(context, source, call):
            continue  # a draw for each row
        fixed = found.node is size and _again(source, found.node)
        if found.place not in seen and not fixed and not overridden(context, found):
            seen.add(found.place)
            yield Slices(found, source, draws=draws)


def _is_of_sampler(context: Context, source: Source, call: cst.Call) -> bool:
    """Whether a call is in the class of the script's that gives a loader its batches."""
    owner = source.enclosing(call, cst.ClassDef)
    given = (argument(site, "batch_sampler") for site in context.sites("loader") if site.uses)
    return owner is not None and owner.name.value in {one.value for one in given if one is not None}


def drawn_size(source: Source, call: cst.Call) -> cst.BaseExpression | None:
    """The number of samples that a call draws, of one dimension."""
    if source.is_named(call.func, "torch.randint"):
        given = source.argument(call, "size") or next(
            (arg for arg in call.args[1:3] if isinstance(arg.value, (cst.Tuple, cst.List))), None
        )
        return _only_entry(given.value) if given is not None else None
    if source.is_named(call.func, "torch.randperm"):
        above = source.parent(call)
        cut = above.slice[0].slice if isinstance(above, cst.Subscript) and len(above.slice) == 1 else None
        return cut.upper if isinstance(cut, cst.Slice) and cut.lower is None else None
    known = next((at for name, at in _DRAWS.items() if source.is_named(call.func, name)), None)
    size = source.argument(call, *known) if known is not None else None
    return (_only_entry(size.value) or size.value) if size is not None else None


def _only_entry(shape: cst.BaseExpression) -> cst.BaseExpression | None:
    alone = isinstance(shape, (cst.Tuple, cst.List)) and len(shape.elements) == 1
    return shape.elements[0].value if alone and isinstance(shape, (cst.Tuple, cst.List)) else None


def _again(source: Source, number: cst.BaseExpression) -> bool:
    """Whether the same number stands in the function again, perhaps with another meaning."""
    same = (source.code(one) for one in source.nodes(cst.Integer, within=source.scope(number)))
    return [*same].count(source.code(number)) > 1


def without_drawn(context: Context, graph: Graph) -> Graph:
    """The graph in which nothing comes again that is chosen by a drawn number: of few images two steps may
    draw the same one."""
    flow, again = graph.flow, set(graph.flow.again)
    known: dict[tuple[str, int], bool] = {}
    drawn = set[int]()
    waiting = []
    for node in graph.nodes:
        site = graph.site(node)
        if site is not None and node.index in again and node.inputs:
            if site.place not in known:
                source = context.source(site.file)
                known[site.place] = draws(source, source.statement_at(site.line))
            if known[site.place]:
                waiting.append(node)
    while waiting:
        node = waiting.pop()
        if node.index not in drawn:
            drawn.add(node.index)
            waiting += [reader for value in node.outputs for reader in graph.consumers.get(value, ())]
    if not drawn:
        return graph
    return Graph(replace(flow, again=tuple(row for row in flow.again if row not in drawn)))


def draws(source: Source, statement: Statement | None) -> bool:
    """Whether a statement chooses entries by a number that it, or its function, draws."""
    chosen = source.nodes(cst.Index, within=statement) if statement is not None else []
    scope = source.scope(statement) if statement is not None and chosen else None
    given = [
        value for one in chosen for name in names_in(one) for value in source.assigned(name, within=scope)
    ]
    return any(
        called_name(call) in _NUMBERS
        for part in (*chosen, *given)
        for call in source.nodes(cst.Call, within=part)
    )
