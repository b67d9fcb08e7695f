"""Names that stand for numbers, as the recorded step shows: those so small that they only keep something
finite, and the dimension of a softmax."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph import graph_of
from warpline.rulekit.graph.pointwise import GUARD
from warpline.syntax.source import Source

#: Operators with such a number, and where it is among their arguments: a keyword, in the user's call.
_AT = {
    "add": {1: "other"}, "sub": {1: "other"}, "clamp": {1: "min", 2: "max"}, "clamp_min": {1: "min"},
    "_softmax": {1: "dim"}, "_log_softmax": {1: "dim"},
}  # fmt: skip


def guards(context: Context, source: Source, function: cst.FunctionDef) -> tuple[tuple[str, float], ...]:
    """``self.eps`` of ``torch.log(p + self.eps)``, ``eps`` of ``p.clamp(min=eps)`` and ``axis`` of
    ``x.softmax(axis)``, with their number: names and attributes in ``function``. None of those that stood for
    several."""
    flow = context.profile.facts.dataflow
    graph, lines = graph_of(flow), source.extent(function)
    found: dict[str, set[float]] = {}
    for line in lines:
        for node in graph.at((source.path, line)):
            for at, keyword in _AT.get(node.name, {}).items():
                number = node.argument(at, keyword)
                small = isinstance(number, float) and 0 < number <= GUARD
                if not (small or (keyword == "dim" and type(number) is int)) or flow.stack[node.index] < 0:
                    continue
                frame = flow.frames[flow.stacks[flow.stack[node.index]][1]]
                if frame.span and (name := _written(source, frame.line, frame.span, at, keyword)):
                    found.setdefault(name, set()).add(number)
    return tuple((name, numbers.pop()) for name, numbers in sorted(found.items()) if len(numbers) == 1)


def _written(source: Source, line: int, span: tuple[int, ...], at: int, keyword: str) -> str:
    """The name that is argument number ``at`` of the expression at ``span``; "" for anything else."""
    last, start, end = span
    nodes = source.at(line, cst.BinaryOperation, cst.Call)
    node = next((one for one in nodes if source.span(one) == ((line, start), (last, end))), None)
    given: cst.BaseExpression | None = None
    if isinstance(node, cst.BinaryOperation):
        given = node.right if _is_name(node.right) else node.left
    elif isinstance(node, cst.Call):
        method = isinstance(node.func, cst.Attribute) and not source.name(node.func).startswith("torch.")
        arg = source.argument(node, keyword, at - method)
        given = arg.value if arg is not None else None
    return source.code(given) if given is not None and _is_name(given) else ""


def _is_name(node: cst.BaseExpression) -> bool:
    held = node.value if isinstance(node, cst.Attribute) else node
    return isinstance(held, cst.Name)
