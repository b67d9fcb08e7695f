"""What one step computes, and well-known formulas in it, however they are written."""

from warpline.rulekit.graph.attention import attentions_of_libraries, scores_of
from warpline.rulekit.graph.graph import Graph, Node, graph_around, graph_of, whole_graph
from warpline.rulekit.graph.known import ACTIVATION, ATTENTION, FAMILIES, LOSS, NORM, UNREAD
from warpline.rulekit.graph.matched import Matched, by_hand, matched, without_formulas
from warpline.rulekit.graph.passes import Passes, passes

__all__ = [
    "ACTIVATION",
    "ATTENTION",
    "FAMILIES",
    "LOSS",
    "NORM",
    "UNREAD",
    "Graph",
    "Matched",
    "Node",
    "Passes",
    "attentions_of_libraries",
    "by_hand",
    "graph_around",
    "graph_of",
    "matched",
    "passes",
    "scores_of",
    "whole_graph",
    "without_formulas",
]
