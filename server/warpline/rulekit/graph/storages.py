"""Which values of a recorded step share their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from warpline.rulekit.graph.graph import MOVED, PIECE, PIECES, SAME, Graph, Node

_COPIES = frozenset({"clone", "contiguous", "_to_copy", "to", "lift_fresh_copy"})
VIEWS = (SAME - _COPIES) | MOVED | PIECE | PIECES | {
    "diagonal", "unfold", "as_strided", "view_as_real", "view_as_complex", "real", "imag", "hsplit", "vsplit",
    "indices", "values", "_indices", "_values",
}  # fmt: skip


def storages(graph: Graph, also: Iterable[Node] = ()) -> Callable[[int], int]:
    """Gives for a value one that stands for its storage: views and changes in place share it, and what the
    nodes ``also`` give, if they were views."""
    parents: dict[int, int] = {}

    def root(value: int) -> int:
        while (above := parents.get(value, value)) != value:
            parents[value] = parents.get(above, above)
            value = above
        return value

    more = set(also)
    for node in graph.nodes:
        if node.inputs and (node.name in VIEWS or graph.is_in_place(node) or node in more):
            for value in node.outputs:
                one, other = root(node.inputs[0]), root(value)
                if one != other:
                    parents[other] = one
    return root
