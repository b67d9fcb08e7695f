"""Loops that reduce the rows of one group after the other: ``x[owner == i].mean(0)``; and the edit that adds
all rows to their groups at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, whole_graph
from warpline.rulekit.rounds import Rounds, nodes_at
from warpline.rulekit.vectorised import put_joined
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method

_BY_HAND = "add all rows to their groups at once, with `index_add_` or `scatter_reduce_`"


@dataclass(frozen=True, slots=True)
class Groups:
    """``rows[owners == i]`` is reduced for each ``i`` below ``number``, by their mean or sum."""

    loop: cst.ListComp | cst.GeneratorExp
    rows: cst.BaseExpression
    owners: cst.BaseExpression
    number: cst.BaseExpression
    mean: bool


def groups(source: Source, loop: cst.CSTNode) -> Groups | None:
    """The groups that a comprehension goes through; None for another loop."""
    if not isinstance(loop, (cst.ListComp, cst.GeneratorExp)) or loop.for_in.ifs or loop.for_in.inner_for_in:
        return None
    over, each, reduced = loop.for_in.iter, loop.for_in.target, loop.elt
    if not isinstance(over, cst.Call) or source.name(over.func) != "range" or len(over.args) != 1:
        return None
    if not isinstance(each, cst.Name) or not is_method(reduced, "mean", "sum"):
        return None
    assert isinstance(reduced, cst.Call)
    assert isinstance(reduced.func, cst.Attribute)
    part, dim = reduced.func.value, source.argument(reduced, "dim", 0)
    if len(reduced.args) != 1 or dim is None or source.literal(dim.value) != 0:
        return None
    index = part.slice[0].slice if isinstance(part, cst.Subscript) and len(part.slice) == 1 else None
    test = index.value if isinstance(index, cst.Index) else None
    if not isinstance(part, cst.Subscript) or not isinstance(test, cst.Comparison):
        return None
    if len(test.comparisons) != 1 or not isinstance(test.comparisons[0].operator, cst.Equal):
        return None
    sides = [test.left, test.comparisons[0].comparator]
    owners = [one for one in sides if source.code(one) != each.value]
    looked_up = (cst.Name, cst.Attribute)
    if len(owners) != 1 or not isinstance(owners[0], looked_up) or not isinstance(part.value, looked_up):
        return None
    return Groups(loop, part.value, owners[0], over.args[0].value, reduced.func.attr.value == "mean")


def added_at_once(context: Context, found: Rounds, each: Groups) -> Fix:
    """Add all rows to their groups at once. Raises Refused unless the recorded step shows that each row is in
    one of the groups."""
    source, graph = found.source, whole_graph(context.profile.facts.dataflow)
    if graph is None:
        raise Refused(_BY_HAND)
    if not isinstance(each.number, (cst.Name, cst.Attribute, cst.Integer)) and not _is_length(each.number):
        raise Refused(f"{_BY_HAND}, and compute the number of groups before")
    dims = _dims(graph, source, each)
    rows, owners, number = (source.code(one) for one in (each.rows, each.owners, each.number))
    edits = Edits(source)
    sizes = ", ".join([number, *([f"*{rows}.shape[1:]"] if dims > 1 else [])])
    added = f"{rows}.new_zeros({sizes}).index_add_(0, {owners}, {rows})"
    if each.mean:
        bincount = edits.add_import("torch.bincount", "import torch")
        spread = f"[:, {', '.join(['None'] * (dims - 1))}]" if dims > 1 else ""
        added = f"({added} / {bincount}({owners}, minlength={number}){spread})"
    put_joined(source, edits, each.loop, added)
    return edits.fix("Add all rows to their groups at once", "unsafe")


def _is_length(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and called_name(node) == "len"


def _dims(graph: Graph, source: Source, each: Groups) -> int:
    """The dimensions of the rows' tensor, where the look-ups of the recorded rounds have all of its rows
    once, and its numbers are added up in their own type. Raises Refused."""
    nodes = nodes_at(graph, source, each.loop)
    looked_up = [node for node in nodes if node.name == "index"]
    taken = Counter[int]()
    for node in looked_up:
        taken[node.inputs[0]] += graph.shape(node.outputs[0])[0]
    tested = [node.inputs[0] for node in nodes if node.name == "eq"]
    whole = all(
        graph.shape(rows)[0] == count and graph.dtype(rows) in ("float32", "float64")
        for rows, count in taken.items()
    )
    one_each = all(graph.dtype(one) in ("int64", "int32") and len(graph.shape(one)) == 1 for one in tested)
    sizes = {len(graph.shape(rows)) for rows in taken}
    if not looked_up or len(tested) != len(looked_up) or not whole or not one_each or len(sizes) != 1:
        raise Refused(_BY_HAND)
    return sizes.pop()
