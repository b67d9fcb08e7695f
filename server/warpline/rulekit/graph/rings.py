"""Queues and windows: tensors of one length that a step copies to put a piece in and let another go."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warpline.rulekit.graph.graph import SAME, Graph, Node
from warpline.rulekit.graph.storages import VIEWS, storages

#: In inference mode operators are recorded as they are called.
_JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})
_COPIES = (SAME - VIEWS) | {"copy"}


def rings(graph: Graph) -> dict[Node, float]:
    """The operators that copy such a tensor, each with the share of what it copies that is new.

    ``cat`` joins it to a piece, and as much as before is kept of the result; ``roll`` makes room for a piece.
    That it is the same tensor is no guess: the next step reads what comes of it in its place.
    """
    if not graph.flow.followed:
        return {}
    own = storages(graph)
    found: dict[Node, float] = {}
    for before, after in graph.flow.followed:
        if graph.shape(before) != graph.shape(after):
            continue  # it grows
        ends = {own(after), *_copied_from(graph, own, own(after))}
        for node in graph.nodes:
            share = _new(graph, own, node, own(before)) if ends & set(map(own, node.outputs)) else None
            if share is not None:
                found[node] = share
    return found


def _copied_from(graph: Graph, own: Callable[[int], int], storage: int) -> Iterator[int]:
    """The storages of what is copied to one, as by ``queue[:] = torch.cat([queue[16:], rows])``."""
    for node in graph.nodes:
        if node.inputs and node.name in _COPIES and storage in map(own, node.outputs):
            yield own(node.inputs[-1])


def _new(graph: Graph, own: Callable[[int], int], node: Node, ring: int) -> float | None:
    """The share of an operator's result that is not the ring's; None where it does not move the ring."""
    kept = sum(graph.size(value) for value in node.inputs if own(value) == ring)
    size = sum(map(graph.size, node.outputs))
    if node.name in _JOINS and 0 < kept < size:
        return 1 - kept / size
    return _rolled(graph, node) if node.name == "roll" and kept == size else None


def _rolled(graph: Graph, node: Node) -> float | None:
    """How far it is rolled, of the whole length."""
    by, along = node.argument(1, "shifts"), node.argument(2, "dims")
    by, along = (one[0] if isinstance(one, tuple) and len(one) == 1 else one for one in (by, along))
    length = graph.shape(node.inputs[0])[along] if isinstance(along, int) else 0
    return min(abs(by), length - abs(by)) / length if isinstance(by, int) and 0 < abs(by) < length else None
