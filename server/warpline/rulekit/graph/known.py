"""All formulas of a graph, each operator in one of them."""

from __future__ import annotations

from collections.abc import Callable

from warpline.rulekit.graph.activation import activations
from warpline.rulekit.graph.attention import attentions, unread_weights
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.loss import losses
from warpline.rulekit.graph.match import Match
from warpline.rulekit.graph.norm import norms

ATTENTION, LOSS, NORM, ACTIVATION = "attention", "loss", "norm", "activation"
UNREAD = "attention for weights that nothing reads"
#: What comes first has an operator for itself: a softmax inside attention is not an activation.
_FAMILIES: tuple[tuple[str, Callable[[Graph], list[Match]]], ...] = (
    (ATTENTION, attentions),
    (UNREAD, unread_weights),
    (LOSS, losses),
    (NORM, norms),
    (ACTIVATION, activations),
)
FAMILIES = tuple(family for family, _ in _FAMILIES)
_LATEST: list[tuple[Graph, dict[str, list[Match]]]] = []


def known(graph: Graph) -> dict[str, list[Match]]:
    """Every match in the step, by family. Computed once for all rules."""
    if not _LATEST or _LATEST[0][0] is not graph:
        _LATEST[:] = [(graph, _known(graph))]
    return _LATEST[0][1]


def _known(graph: Graph) -> dict[str, list[Match]]:
    taken: set[Node] = set()
    found: dict[str, list[Match]] = {}
    for family, look in _FAMILIES:
        found[family] = [match for match in look(graph) if not taken.intersection(match.nodes)]
        for match in found[family]:
            taken.update(match.nodes)
    return found
