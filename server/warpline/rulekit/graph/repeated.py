"""Loops that repeat the same operators on the same tensors, or on other pieces of one, in each iteration."""

from __future__ import annotations

from collections.abc import Collection

from warpline.rulekit.graph.graph import MOVED, PIECE, PIECES, Graph, Node

#: What adds the rounds up may need the round before.
_ADDS = frozenset({"add", "sub"})
_PIECES = PIECE | PIECES


def repeated(graph: Graph, places: Collection[tuple[str, int]], least: int) -> tuple[int, bool]:
    """Rounds of the loop with the lines ``places``, and whether an operator gets the same tensors and another
    number each time, as ``labels == k`` does; else one gets other pieces of a tensor, which may have been
    taken before the loop, as ``columns[i] * columns[j]`` does. (0, False) for fewer than ``least``.

    It is that, too, where rounds have parameters of their own (each has a layer of its own), and where one
    needs what another one made, other than to add it up: no whole tensor can take the place of such rounds.
    """
    own = [node for node in graph.nodes if graph.place(node) in places]
    layers = any(value in graph.parameters for node in own for value in node.inputs)
    by_site: dict[tuple[int, str], list[Node]] = {}
    for node in own:
        by_site.setdefault((node.site, node.name), []).append(node)
    for nodes in by_site.values():
        whole = not layers and _differs_by_number(nodes)
        if len(nodes) < least or not (whole or _differs_by_piece(graph, nodes, least)):
            continue
        # What ran less often, as the `stack` around a comprehension, is in no round.
        often = [same for same in by_site.values() if len(same) >= len(nodes)]
        if not whole and any(_has_layers(graph, same) for same in often):
            continue
        firsts = min((same for same in often if len(same) == len(nodes)), key=lambda same: same[0].index)
        in_rounds = {node for same in often for node in same}
        if not _needs_another(graph, [node for node in own if node in in_rounds], firsts):
            return len(nodes), whole
    return 0, False


def _differs_by_number(nodes: list[Node]) -> bool:
    inputs = {node.inputs for node in nodes}
    numbers = {tuple(one for one in node.arguments if type(one) in (int, float)) for node in nodes}
    return len(inputs) == 1 and inputs != {()} and len(numbers) == len(nodes)


def _differs_by_piece(graph: Graph, nodes: list[Node], least: int) -> bool:
    """Whether each gets another piece, and ``least`` or more in a row one of the same tensor, as in each call
    of a layer with such a loop: rows of different tensors, such as the columns of a table, are no rows of one
    that could be worked on at once."""
    taken = set()
    runs: list[tuple[int, frozenset[int]]] = []
    for node in nodes:
        origins = (graph.origin(value, MOVED) for value in node.inputs)
        pieces = [one for one in origins if one in graph.producer and graph.producer[one].name in _PIECES]
        taken.add(tuple(pieces))
        wholes = frozenset(graph.origin(one, MOVED, _PIECES) for one in pieces)
        turns, common = runs[-1] if runs else (0, frozenset())
        if common & wholes:
            runs[-1] = turns + 1, common & wholes
        else:
            runs.append((1, wholes))
    return () not in taken and len(taken) == len(nodes) and min(turns for turns, _ in runs) >= least


def _has_layers(graph: Graph, nodes: list[Node]) -> bool:
    """Whether calls of one operator read different parameters."""
    return len({tuple(one for one in node.inputs if one in graph.parameters) for node in nodes}) > 1


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
            # What was made before the first round is no round's: the pieces of a list, say.
            if node.name not in _ADDS and made.get(origin, current) not in (-1, current):
                return True
        for value in node.outputs:
            made[value] = current
    return False
