"""The edit that takes only the columns that a batch uses, of rows that are all filled up to one length."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, Node
from warpline.rulekit.graph.rows import LOSSES
from warpline.rulekit.row_lengths import BY_HAND, TITLE, is_compiled, is_counted_on
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.dataflow import Padding

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp, cst.Lambda)


def to_used_columns(context: Context, graph: Graph, found: Padding) -> Fix:
    """Where a line takes the batch's rows from a table of all rows, leave out the columns at its end that
    have nothing but the padding token. Raises Refused, also on a GPU, where the host would have to wait."""
    value = graph.origin(found.value)
    made, compared = graph.producer.get(value), _compared(graph, value)
    place = graph.place(made) if made is not None else None
    if (
        context.on_gpu
        or found.mask
        or is_compiled(context)
        or made is None
        or place is None
        or compared is None
    ):
        raise Refused(BY_HAND)
    source = context.source(place[0])
    part = _taken(source, graph, made, place[1])
    statement = source.statement(part) if part is not None else None
    function = source.enclosing(part, cst.FunctionDef) if part is not None else None
    if part is None or not isinstance(statement, cst.SimpleStatementLine):
        raise Refused(BY_HAND)
    names = {one.value for one in source.nodes(cst.Name, within=function)}
    inner = source.enclosing(part, *_COMPREHENSIONS)
    hidden = inner is not None and source.inside(inner, statement)
    if "longest" in names or hidden or _is_needed(graph, value, found):
        raise Refused(BY_HAND)
    if is_counted_on(context, graph, statement, found):
        raise Refused(BY_HAND)
    token, rows = _token(source, graph, compared), source.code(part)
    edits = Edits(source)
    # The last column that has something else: the place of the largest sum over the columns so far.
    used = f"({rows} != {token}).any(0).cumsum(0).argmax()"
    edits.insert_before(statement, f"longest = int({used}) + 1")
    edits.replace(part, f"{rows[:-1]}, :longest]")
    return edits.fix(TITLE, "unsafe")


def _compared(graph: Graph, value: int) -> Node | None:
    """The operator that finds the padding of a batch: the only comparison with a whole number."""
    uses = [node for node, _ in graph.uses(value) if node.name in ("eq", "ne")]
    numbers = {
        node.arguments[1] for node in uses if len(node.arguments) == 2 and type(node.arguments[1]) is int
    }
    return uses[0] if uses and len(numbers) == 1 else None


def _token(source: Source, graph: Graph, compared: Node) -> str:
    """The padding token, as the file names it."""
    number, place = compared.arguments[1], graph.place(compared)
    if place is None or place[0] != source.path:
        return str(number)
    sides = [one.comparator for one in source.at(place[1], cst.ComparisonTarget)]
    named = (one.value for one in sides if isinstance(one, cst.Name))
    return next((one for one in named if source.literal(source.constant(one)) == number), str(number))


def _taken(source: Source, graph: Graph, made: Node, line: int) -> cst.Subscript | None:
    """The expression ``table[rows]`` that ``made`` is; None where there may be others of its size."""
    nodes = [node for node in graph.at((source.path, line)) if node.name == "index"]
    parts = [one for one in source.at(line, cst.Subscript) if source.line(one) == line and _is_plain(one)]
    parts.sort(key=source.span)
    alike = [node for node in nodes if graph.shape(node.outputs[0])[:2] == graph.shape(made.outputs[0])]
    if made.name != "index" or alike != [made] or len(parts) != len(nodes):
        return None
    return parts[nodes.index(made)]


def _is_plain(part: cst.Subscript) -> bool:
    index = part.slice[0].slice
    named = isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.Attribute))
    return named and len(part.slice) == 1 and isinstance(part.value, (cst.Name, cst.Attribute))


def _is_needed(graph: Graph, value: int, found: Padding) -> bool:
    """Whether the batch meets something else that has its columns and is not computed of it, as labels of
    each position (parameters and buffers are another matter), or has targets where it has padding."""
    unscored = {one.value: one.unscored for one in graph.flow.unscored}
    lengths = {found.columns, found.columns - 1}
    lengths |= {found.rows * one for one in lengths}
    fixed, own = {*graph.parameters, *graph.flow.buffers}, {value}
    for node in graph.nodes:
        inputs = node.inputs
        if inputs and fixed.issuperset(inputs):
            fixed.update(node.outputs)
        elif not own.isdisjoint(inputs):
            own.update(node.outputs)
            scored = node.name in LOSSES and node.inputs[1] in own
            if scored and unscored.get(node.inputs[1], 0) < found.shared * found.rows:
                return True
            if any(not lengths.isdisjoint(graph.shape(one)) for one in {*inputs} - own - fixed):
                return True
    return False
