"""Operators that depend only on parameters that no optimizer has."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.rulekit.graph.graph import COMPILED_CALL, Graph, Node
from warpline.rulekit.graph.storages import VIEWS

_UNHELD, _OTHER = 1, 2


@dataclass(frozen=True, slots=True)
class Unheld:
    """``shares``: by line, the part of what it computes of parameters that is of such ones alone, by numbers
    read and written. ``order``: for each function, file and name, in which order that (True) and the rest
    (False) come. ``calls``: the outermost lines under which gradients go through that alone."""

    shares: dict[tuple[str, int], float]
    order: dict[tuple[str, str], list[bool]]
    calls: frozenset[tuple[str, int]] = frozenset()


def of_unheld(graph: Graph) -> Unheld:
    """Lines whose operators depend on such parameters (``Dataflow.unheld``) and on no other parameter, or
    tensor that asks for gradients.

    What a line computes without any parameter does not count, nor do views, which compute nothing: a layer
    that others go through takes one of its weight. What was computed without a graph depends on none for what
    follows: a policy acts under `no_grad`, and its steps are what a network learns from.
    """
    unheld = frozenset(graph.flow.unheld)
    if not unheld or graph.flow.missing:
        return Unheld({}, {})
    kinds: dict[int, int] = {
        value: _UNHELD if value in unheld else _OTHER
        for value in (*graph.parameters, *unheld, *graph.flow.leaves)
    }
    lines: dict[tuple[str, int], dict[bool, int]] = {}
    order: dict[tuple[str, str], list[bool]] = {}
    ungraphed = frozenset(graph.flow.ungraphed)
    apart: list[tuple[Node, bool]] = []
    for node in graph.nodes:
        kind = 0
        for value in node.inputs:
            kind |= kinds.get(value, 0)
        for value in (one for one in node.outputs if one not in unheld):  # a new average is one, too
            kinds[value] = kinds.get(value, 0) | (kind if node.index not in ungraphed else 0)
        site = graph.site(node)
        if site is None or not kind or node.name in VIEWS:
            continue
        own = kind == _UNHELD
        sizes = lines.setdefault(site.place, {True: 0, False: 0})
        sizes[own] += _numbers(graph, node)
        if node.index not in ungraphed:
            apart.append((node, own))
        turns = order.setdefault((site.file, site.function), [])
        if turns[-1:] != [own]:
            turns.append(own)
    shares = {place: sizes[True] / max(1, sum(sizes.values())) for place, sizes in lines.items()}
    return Unheld(
        {place: share for place, share in shares.items() if share > 0}, order, _outermost(graph, apart)
    )


def calls_of_unheld(graph: Graph) -> frozenset[tuple[str, int]]:
    """The outermost lines, in a step with compiled calls, that call nothing with parameters but what has such
    parameters alone."""
    unheld = frozenset(graph.flow.unheld)
    ungraphed, compiled = frozenset(graph.flow.ungraphed), frozenset(graph.flow.unheld_calls)
    found: list[tuple[Node, bool]] = []
    for node in graph.nodes:
        read = graph.parameters.intersection(node.inputs)
        if node.index in ungraphed or not (read or node.name == COMPILED_CALL):
            continue
        own = node.index in compiled if node.name == COMPILED_CALL else read <= unheld
        found.append((node, own))
    return _outermost(graph, found)


def _outermost(graph: Graph, nodes: list[tuple[Node, bool]]) -> frozenset[tuple[str, int]]:
    """The outermost lines under which only such operators ran as are marked."""
    apart: dict[tuple[str, int], bool] = {}
    stacks = []
    for node, own in nodes:
        lines = [frame.place for frame in graph.frames(node)]
        stacks.append(lines[::-1])
        for line in lines:
            apart[line] = apart.get(line, True) and own
    found = (next((line for line in lines if line[1] > 0 and apart[line]), None) for lines in stacks)
    return frozenset(line for line in found if line is not None)


def _numbers(graph: Graph, node: Node) -> int:
    return sum(graph.size(value) for value in (*node.inputs, *node.outputs))
