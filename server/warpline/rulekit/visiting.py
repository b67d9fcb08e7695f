"""The line that makes the order in which a program goes through its rows, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import MOVED, SAME, Graph, Node, Ref
from warpline.syntax.source import NOT_LITERAL, Source, receiver

_COMPARISONS = frozenset({"lt", "le", "gt", "ge"})
#: What takes a part of the rows.
_TAKES = frozenset({"slice", "narrow", "index", "index_select", "split", "tensor_split", "chunk"})
#: Calls whose result is an order of rows, before anything sorts it.
_ORDERS = ("arange", "randperm", "range", "permutation")
#: Calls and methods that keep the order of what they get.
_KEEP = (
    "from_numpy", "as_tensor", "tensor", "asarray", "array", "list", "tuple", "iter", "to", "cuda", "cpu",
    "numpy", "tolist", "long", "int", "clone", "contiguous", "split", "chunk", "tensor_split", "array_split",
)  # fmt: skip
_DEPTH = 12  # names that are followed one after the other: chosen, so that a circle ends


def visited_at(context: Context, graph: Graph, rows: int) -> tuple[str, int] | None:
    """Where the order is made in which batches of ``rows`` rows are taken: the lengths that a mask compares
    with were taken from those of all rows, by a slice of that order. None where that cannot be followed, or
    leads to several."""
    found = {
        order
        for node in graph.nodes
        if node.name in _COMPARISONS and graph.shape(node.outputs[0])[:1] == (rows,)
        for taken in _takes(graph, node, rows)
        if (place := graph.place(taken)) is not None
        for order in _orders_at(context, place)
    }
    return found.pop() if len(found) == 1 else None


def _takes(graph: Graph, node: Node, rows: int) -> Iterator[Node]:
    """The operators that took ``rows`` of more rows that were there before the step, and led to ``node``."""
    waiting, seen = list(node.inputs), set[int]()
    while waiting:
        value = waiting.pop()
        made = graph.producer.get(value)
        if made is None or value in seen:
            continue
        seen.add(value)
        first = made.arguments[0] if made.arguments else None
        if made.name in _TAKES and isinstance(first, Ref):
            whole = graph.shape(first.value)
            if whole and whole[0] > rows and graph.shape(value)[:1] == (rows,):
                if graph.origin(first.value, MOVED) not in graph.producer:
                    yield made
                waiting += made.inputs[1:]
                continue
        if made.name in SAME | MOVED | _TAKES:
            waiting += made.inputs


def _orders_at(context: Context, place: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """The orders whose parts are taken on a line."""
    source = context.source(place[0])
    for part in source.at(place[1], cst.Subscript):
        index = part.slice[0].slice
        first = index.lower if isinstance(index, cst.Slice) else None
        first = index.value if isinstance(index, cst.Index) else first
        # The same ones each time, as in `x[:n]` and `x[None]`.
        if first is None or isinstance(first, cst.Ellipsis) or source.literal(first) is not NOT_LITERAL:
            continue
        made = _order(context, source, part.value, _DEPTH)
        if made is not None:
            yield made


def order_of_part(context: Context, source: Source, node: cst.BaseExpression) -> tuple[str, int] | None:
    """Where the order was made that ``node`` is a slice of. None where it is sorted in place, too."""
    part = _given(source, node) if isinstance(node, cst.Name) else node
    if not isinstance(part, cst.Subscript) or not isinstance(part.slice[0].slice, cst.Slice):
        return None
    whole = part.value
    sorted_ = [receiver(call) for call in source.calls_of("sort")]
    if source.code(whole) in [source.code(one) for one in sorted_ if one is not None]:
        return None
    return _order(context, source, whole, _DEPTH)


def _order(context: Context, source: Source, node: cst.BaseExpression, depth: int) -> tuple[str, int] | None:
    """The call that made the order which ``node`` holds, or is arranged in."""
    if depth == 0:
        return None
    if isinstance(node, cst.Name):
        given = _given(source, node)
        return _order(context, source, given, depth - 1) if given is not None else None
    if isinstance(node, cst.Subscript):  # all[order]
        index = node.slice[0].slice
        return _order(context, source, index.value, depth - 1) if isinstance(index, cst.Index) else None
    if not isinstance(node, cst.Call):
        return None
    if source.is_named(node.func, *_ORDERS):
        return source.place(node)
    back = source.returned(node)
    if back is not None:
        return _order(context, source, back, depth - 1)
    if not source.is_named(node.func, *_KEEP):
        return None
    held = receiver(node) if not source.name(node.func).startswith(("torch.", "numpy.")) else None
    whole = held or (node.args[0].value if node.args else None)
    return _order(context, source, whole, depth - 1) if whole is not None else None


def _given(source: Source, name: cst.Name) -> cst.BaseExpression | None:
    """What the last assignment before ``name`` gives it, in its function; a part of what a function of the
    file returns as a tuple is followed into it."""
    function = source.enclosing(name, cst.FunctionDef)
    found: cst.BaseExpression | None = None
    for assign in source.nodes(cst.Assign, within=function):
        if source.inside(name, assign) or source.span(assign) > source.span(name):
            continue
        for target in assign.targets:
            if isinstance(target.target, cst.Name) and target.target.value == name.value:
                found = assign.value
            elif isinstance(target.target, cst.Tuple):
                at = [source.code(one.value) for one in target.target.elements]
                if name.value not in at:
                    continue
                found = _part(source, assign.value, at.index(name.value))
            else:
                continue
            branch = source.enclosing(assign, cst.If)
            if branch is not None and not source.inside(name, branch):
                return None  # another branch may give it another value
    return found


def _part(source: Source, whole: cst.BaseExpression, at: int) -> cst.BaseExpression | None:
    whole = source.returned(whole) or whole
    if not isinstance(whole, cst.Tuple) or len(whole.elements) <= at:
        return None
    return whole.elements[at].value
