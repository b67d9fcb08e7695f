"""Where the user's code asks for a tensor that is the same in each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph.constants import VIEWS
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.parts import Part
from warpline.syntax.source import Source

FileLine = tuple[str, int]
_DEPTH = 4  # functions that only call such functions


def made_at(context: Context, graph: Graph, nodes: Sequence[Node], own: Sequence[Part]) -> FileLine | None:
    """The line to take out of the step: the call of the function that computes nothing but ``nodes`` where
    one line calls it, else the line of ``own`` that takes longest.

    None where a name on that line is counted by the loop around it, so the next step has another value.
    """
    if not own:
        return None
    hottest = max(own, key=lambda part: part.step_ms)
    place = hottest.place
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    # The other parts of a line that computes more than constants may use the loop's names as they like.
    if statement is not None and hottest.share == 1 and _counts(source, statement):
        return None
    site = graph.site(nodes[0])
    function = site.function if site is not None else ""
    constant = {node.index for node in nodes}
    for _ in range(_DEPTH):
        if not _computes_nothing_else(graph, place[0], function, constant):
            return place
        callers = _callers(context, function)
        if any(_counts(caller.source, caller.call) for caller in callers):
            return None
        if len({caller.place for caller in callers}) != 1:
            return place
        place, function = callers[0].place, callers[0].function
    return place


def _computes_nothing_else(graph: Graph, file: str, function: str, constant: set[int]) -> bool:
    nodes = [
        node
        for node in graph.nodes
        if (site := graph.site(node)) is not None and (site.file, site.function) == (file, function)
    ]
    return function.rpartition(".")[2] not in ("<module>", "forward", "") and all(
        node.index in constant or node.name in VIEWS for node in nodes
    )


@dataclass(frozen=True, slots=True)
class _Caller:
    source: Source
    call: cst.Call
    place: FileLine
    function: str


def _callers(context: Context, function: str) -> list[_Caller]:
    """Calls of a function or method of that name on lines that ran, with the functions they are in."""
    name = function.rpartition(".")[2]
    found = []
    for cost in context.profile.lines:
        source = context.source(cost.file)
        calls = source.calls(cost.line)
        for call in calls:
            if source.is_named(call.func, name) and source.line(call) == cost.line:
                found.append(_Caller(source, call, cost.place, cost.function))
    return found


def _counts(source: Source, node: cst.CSTNode) -> bool:
    """Whether ``node`` uses a name that a loop around it, or ``+= 1`` in its function, gives a new value."""
    counted = _counted(source, node)
    return any(name.value in counted for name in source.nodes(cst.Name, within=node))


def _counted(source: Source, node: cst.CSTNode) -> set[str]:
    function = source.enclosing(node, cst.FunctionDef) or source.module
    sums = [one for one in source.nodes(cst.AugAssign, within=function) if source.loops(one)]
    targets: list[cst.CSTNode] = [
        one.target for one in sums if isinstance(one.value, (cst.Integer, cst.Float, cst.Name))
    ]
    targets += [loop.target for loop in source.loops(node) if isinstance(loop, cst.For)]
    return {name.value for target in targets for name in source.nodes(cst.Name, within=target)}
