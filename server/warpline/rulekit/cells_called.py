"""Recurrent cells in functions and modules of the script that a loop calls for each time of a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, callers, function_of
from warpline.rulekit.cells_at_once import Cells, cell_lines, cells, made_of
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import MOVED, Graph, Node, whole_graph
from warpline.rulekit.graph.lowered import PRODUCTS
from warpline.rulekit.rounds import LEAST_ROUNDS, begun
from warpline.rulekit.terms import names_in
from warpline.syntax.source import Source, alone

_DEPTH = 4  # functions between the loop and the cell
_MATRIX = 2  # dimensions


@dataclass(frozen=True, slots=True)
class Called:
    """``cells``: those of the loop, which begins ``begun`` times a step. ``free``: lines with work of a round
    that no later round needs: it can be done for all times at once."""

    cells: Cells
    free: list[LineCost]
    begun: float


def called_cells(context: Context) -> Iterator[Called]:
    """Cells whose input needs no earlier state, as the recorded step shows. A cell that gets what it gave, as
    in generation, or what attention makes of its state, has no layer."""
    graph = whole_graph(context.profile.facts.dataflow)
    direct = {found.cost.place for found in cells(context)}
    for cost, layer, _ in cell_lines(context) if graph is not None else ():
        found = _over_times(context, cost) if cost.place not in direct else None
        if graph is None or found is None or not _is_given(graph, cost.place):
            continue
        source, loop, caller = found
        needed = _recurrent(graph, cost.place)
        free = [
            one
            for one in _of_rounds(context, source, loop, caller)
            if (nodes := graph.at(one.place)) and needed.isdisjoint(node.index for node in nodes)
        ]
        whole = Cells(source, loop, cost, layer, caller.calls)
        yield Called(whole, free, begun(context, source, loop, caller.calls))


def _of_rounds(context: Context, source: Source, loop: cst.For, caller: LineCost) -> list[LineCost]:
    """The lines of a loop's body, and those of functions that ``caller`` calls and nothing else does."""
    body = context.costs_of(source, loop.body)
    called = [one for one in below(context, caller) if one not in body]
    known = {*body, *called}
    return [*body, *(one for one in called if known.issuperset(callers(context, function_of(one))))]


def _over_times(context: Context, cost: LineCost) -> tuple[Source, cst.For, LineCost] | None:
    """The loop that calls the function of a line, or one that calls this, for each time, and its line that
    does so: it hands over the state that it got and something of this time."""
    for _ in range(_DEPTH):
        calling = callers(context, function_of(cost))
        if len(calling) != 1:
            return None
        cost = calling[0]
        source = context.source(cost.file)
        loop, statement = next(iter(source.loops_at(cost.line)), None), source.statement_at(cost.line)
        often = cost.calls / begun(context, source, loop, cost.calls) if loop is not None else 0.0
        if isinstance(loop, cst.For) and often >= LEAST_ROUNDS:
            return (source, loop, cost) if _hands_state_on(loop, statement) else None
    return None


def _hands_state_on(loop: cst.For, statement: cst.CSTNode | None) -> bool:
    assign = alone(statement) if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call):
        return False
    made = made_of(loop, assign)
    if made is None:
        return False
    given = [names_in(arg.value) for arg in assign.value.args]
    states = {name for target in assign.targets for name in names_in(target.target)}
    fed = [names for names in given if not names & made]
    kept = [names for names in given if names & made]
    return bool(kept) and all(names <= states for names in kept) and any(
        names & names_in(loop.target) for names in fed
    )  # fmt: skip


def _is_given(graph: Graph, place: tuple[str, int]) -> bool:
    """Whether a cell's input needs nothing that the cell gave before: of its two products, by their weights,
    one gets the input and one the state."""
    products: dict[int, list[Node]] = {}
    for node in graph.at(place):
        weights = [one for value in node.inputs if (one := graph.origin(value, MOVED)) in graph.parameters]
        matrices = [one for one in weights if len(graph.shape(one)) == _MATRIX]
        if node.name in PRODUCTS and matrices:
            products.setdefault(matrices[0], []).append(node)
    given = [nodes for nodes in products.values() if not _needs_itself(graph, nodes)]
    return bool(given) and 2 * len(given) >= len(products) and min(map(len, given)) >= LEAST_ROUNDS


def _needs_itself(graph: Graph, nodes: Sequence[Node]) -> bool:
    own, after = {node.index for node in nodes}, set[int]()
    for node in graph.nodes:
        needs = not after.isdisjoint(node.inputs)
        if needs and node.index in own:
            return True
        if needs or node.index in own:
            after.update(node.outputs)
    return False


def _recurrent(graph: Graph, place: tuple[str, int]) -> set[int]:
    """The operators between one call of the cell and another, by number."""
    own = {node.index for node in graph.at(place)}
    after, before = set[int](), set[int]()
    late = []
    for node in graph.nodes:
        if node.index in own or not after.isdisjoint(node.inputs):
            after.update(node.outputs)
            late.append(node)
    found = set[int]()
    for node in reversed(late):
        if node.index in own or not before.isdisjoint(node.outputs):
            before.update(node.inputs)
            found.add(node.index)
    return found
