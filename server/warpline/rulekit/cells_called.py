"""Recurrent cells in functions and modules of the script that a loop calls for each time of a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, callers, function_of
from warpline.rulekit.cells_at_once import Cells, cell_lines, cells
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import MOVED, PIECE, PIECES, Graph, Node, whole_graph
from warpline.rulekit.graph.lowered import PRODUCTS
from warpline.rulekit.rounds import LEAST_ROUNDS, begun
from warpline.rulekit.terms import names_in
from warpline.syntax.source import Source

_DEPTH = 4  # functions between the loop and the cell
_MATRIX = 2  # dimensions


#: A line that calls the cell's function for each time, and the loop around it.
_Calling = tuple[Source, cst.For, LineCost]


@dataclass(frozen=True, slots=True)
class Called:
    """``cells``: those of the loop, the first one where several call the cell. Loops begin ``begun`` times a
    step. ``free``: lines with work of a round that no later round needs: it can be done for all times at
    once."""

    cells: Cells
    free: list[LineCost]
    begun: float


def called_cells(context: Context) -> Iterator[Called]:
    """Cells whose input needs no earlier state, as the recorded step shows. A cell that gets what it gave, as
    in generation, or what attention makes of its state, has no layer."""
    graph = whole_graph(context.profile.facts.dataflow)
    direct = {found.cost.place for found in cells(context)}
    for cost, layer, _ in cell_lines(context) if graph is not None else ():
        found = _over_times(context, cost) if cost.place not in direct else []
        if graph is None or not found or not _is_layer(graph, cost.place):
            continue
        needed = _recurrent(graph, cost.place)
        free = [
            one
            for one in _of_rounds(context, found)
            if (nodes := graph.at(one.place)) and needed.isdisjoint(node.index for node in nodes)
        ]
        whole = Cells(*found[0][:2], cost, layer, sum(caller.calls for _, _, caller in found))
        times = sum(begun(context, source, loop, caller.calls) for source, loop, caller in found)
        yield Called(whole, free, times)


def _of_rounds(context: Context, found: Sequence[_Calling]) -> list[LineCost]:
    """The lines of the loops' bodies, and those of functions that they call there and nothing else does."""
    body = [cost for source, loop, _ in found for cost in context.costs_of(source, loop.body)]
    called = [one for *_, caller in found for one in below(context, caller)]
    known = {*body, *called}
    inside = (one for one in called if known.issuperset(callers(context, function_of(one))))
    return list(dict.fromkeys([*body, *inside]))


def _over_times(context: Context, cost: LineCost, depth: int = _DEPTH) -> list[_Calling]:
    """What calls the function of a line for each time in a loop, directly or through other functions, and
    gives it something of this time, as no loop does that waits for what follows from the state (a game).
    Nothing where something else calls it, too."""
    found: list[_Calling] = []
    for caller in callers(context, function_of(cost)) if depth else ():
        source = context.source(caller.file)
        loop = next(iter(source.loops_at(caller.line)), None)
        often = caller.calls / begun(context, source, loop, caller.calls) if loop is not None else 0.0
        if isinstance(loop, cst.For) and often >= LEAST_ROUNDS:
            given = [arg.value for call in source.calls(caller.line) for arg in call.args]
            if not any(names_in(value) & names_in(loop.target) for value in given):
                return []
            found.append((source, loop, caller))
        elif further := _over_times(context, caller, depth - 1):
            found += further
        else:
            return []
    return found


def _is_layer(graph: Graph, place: tuple[str, int]) -> bool:
    """Whether a layer can do the calls of a cell: of its two products, by their weights, one gets the input,
    which needs nothing that the cell gave before, and one the state, just as the cell gave it."""
    products: dict[int, list[Node]] = {}
    for node in graph.at(place):
        weights = [one for value in node.inputs if (one := graph.origin(value, MOVED)) in graph.parameters]
        matrices = [one for one in weights if len(graph.shape(one)) == _MATRIX]
        if node.name in PRODUCTS and matrices:
            products.setdefault(matrices[0], []).append(node)
    given = [nodes for nodes in products.values() if not _needs_itself(graph, nodes)]
    if not len(given) < len(products) <= 2 * len(given) or min(map(len, given)) < LEAST_ROUNDS:
        return False
    fed = {node.index for nodes in given for node in nodes}
    return _keeps_its_state(graph, graph.at(place), fed)


def _keeps_its_state(graph: Graph, nodes: Sequence[Node], fed: set[int]) -> bool:
    """Whether ``nodes``, but those that are ``fed``, by number, read nothing that others make of what they
    give."""
    made = {value for node in nodes for value in node.outputs}
    after = set(made)
    for node in graph.nodes:
        if not after.isdisjoint(node.inputs):
            after.update(node.outputs)

    read = {value for node in nodes if node.index not in fed for value in node.inputs}
    return (after - made).isdisjoint(graph.origin(value, MOVED, PIECE, PIECES) for value in read)


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
