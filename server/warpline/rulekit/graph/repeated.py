"""Loops that repeat the same operators on the same tensors, once for each of several numbers."""

from __future__ import annotations

from collections.abc import Collection

from warpline.rulekit.graph.graph import Graph, Node

#: What adds the rounds up may need the round before.
_ADDS = frozenset({"add", "sub"})


def repeated(graph: Graph, places: Collection[tuple[str, int]], least: int) -> int:
    """Rounds of the loop with the lines ``places`` in which an operator gets the same tensors and another
    number each time, as ``labels == k`` does; 0 for fewer than ``least``.

    It is 0, too, where rounds use parameters (each has a layer of its own), and where one needs what another
    one made, other than to add it up: no whole tensor can take the place of such rounds.
    """
    own = [node for node in graph.nodes if graph.place(node) in places]
    if any(value in graph.parameters for node in own for value in node.inputs):
        return 0
    by_site: dict[tuple[int, str], list[Node]] = {}
    for node in own:
        by_site.setdefault((node.site, node.name), []).append(node)
    for nodes in by_site.values():
        if len(nodes) < least or not _differs_by_number(nodes):
            continue
        # What ran less often, as the `stack` around a comprehension, is in no round.
        in_rounds = [node for node in own if len(by_site[node.site, node.name]) >= len(nodes)]
        if not _needs_another(graph, in_rounds, nodes):
            return len(nodes)
    return 0


def _differs_by_number(nodes: list[Node]) -> bool:
    inputs = {node.inputs for node in nodes}
    numbers = {tuple(one for one in node.arguments if type(one) in (int, float)) for node in nodes}
    return len(inputs) == 1 and inputs != {()} and len(numbers) == len(nodes)


def _needs_another(graph: Graph, own: list[Node], firsts: list[Node]) -> bool:
    """Whether an operator reads what another round made; ``firsts``: one operator of each round."""
    starts = [node.index for node in firsts]
    made: dict[int, int] = {}
    current = -1
    for node in own:
        while current + 1 < len(starts) and node.index >= starts[current + 1]:
            current += 1
        for value in node.inputs:
            origin = graph.origin(value)
            if node.name not in _ADDS and made.get(origin, current) != current:
                return True
        for value in node.outputs:
            made[value] = current
    return False
