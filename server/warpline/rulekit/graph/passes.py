"""Elementwise and reducing operators that the user's own code calls one after the other.

What torch's own layers and casts of autocast do is none of them: those are one kernel each, and stay.
Nor is what reads or makes complex numbers: Inductor calls torch's kernels for it (seen with torch 2.13).
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.graph.evaluate import REDUCTIONS
from warpline.rulekit.graph.graph import COMPILED_CALL, MOVED, Graph, Node, graph_around
from warpline.rulekit.graph.pointwise import POINTWISE
from warpline.rulekit.kernels import is_product
from warpline.wire.dataflow import DIRECT

#: Beside those, what reads whole tensors and computes little.
_MORE = frozenset({
    "cat", "stack", "roll", "flip", "floor", "round", "ceil", "frac", "fmod", "remainder", "nan_to_num",
    "cumsum", "_softmax", "_log_softmax", "dropout", "native_dropout", "tan", "atan", "atan2", "sinc",
})  # fmt: skip
_PASSES = POINTWISE | REDUCTIONS | _MORE


#: How often each operator was called at a line, by its name.
Calls = collections.Counter[tuple[tuple[str, int], str]]


@dataclass(frozen=True, slots=True)
class Passes:
    """How many calls of some operators a line has, and their share (0 to 1) of its forward time without
    matrix products."""

    count: int = 0
    share: float = 0.0


def passes(context: Context) -> dict[tuple[str, int], Passes] | None:
    """The passes of each line that is not compiled. None where the step's operators were not all recorded."""
    graph = graph_around(context.profile.facts.dataflow)
    return of_graph(graph, context.cost) if graph is not None else None


def of_graph(graph: Graph, cost_of: Callable[[str, int], LineCost | None]) -> dict[tuple[str, int], Passes]:
    """The same as ``passes``, of one graph."""
    own: dict[tuple[str, int], list[Node]] = {}
    for node in graph.nodes:
        place = graph.place(node)
        if _is_pass(graph, node) and _has_neighbour(graph, node) and place is not None:
            own.setdefault(place, []).append(node)
    everything: Calls = collections.Counter()
    for node in graph.nodes:
        if (place := graph.place(node)) is not None and place in own:
            everything[place, node.name] += 1
    found = {}
    for place, nodes in own.items():
        cost = cost_of(*place)
        share = _share(cost, nodes, everything) if cost is not None else 0.0
        found[place] = Passes(len({node.site for node in nodes}), share)
    return found


def _is_pass(graph: Graph, node: Node) -> bool:
    site = graph.site(node)
    if node.name not in _PASSES or not node.outputs or site is None or site.via != DIRECT:
        return False
    return not any(graph.dtype(value).startswith("complex") for value in (*node.inputs, *node.outputs))


def _has_neighbour(graph: Graph, node: Node) -> bool:
    """Whether a pass that another call makes comes right before it or after it, and could be made with it."""
    made = (graph.producer.get(graph.origin(value, MOVED)) for value in node.inputs)
    before = [(other, node) for other in made if other is not None]
    after = [(node, user) for value in node.outputs for user, _ in graph.uses(value, MOVED)]
    return any(
        first.site != second.site
        and _is_pass(graph, second if first is node else first)
        and not _waits(graph, first, second)
        for first, second in (*before, *after)
    )


def _waits(graph: Graph, first: Node, second: Node) -> bool:
    """Whether ``second``, which reads what ``first`` makes, also needs a product of that, as a residual sum
    does: then they cannot be one kernel. Compiled code may hold products."""
    seen = set[tuple[int, bool]]()
    waiting = [(value, False) for value in second.inputs]
    while waiting:
        value, multiplied = waiting.pop()
        node = graph.producer.get(value)
        if node is None or node.index < first.index or (value, multiplied) in seen:
            continue
        seen.add((value, multiplied))
        if node is first:
            if multiplied:
                return True
            continue
        multiplied = multiplied or node.name == COMPILED_CALL or is_product(f"aten::{node.name}")
        waiting += [(one, multiplied) for one in node.inputs]
    return False


def _share(cost: LineCost, nodes: list[Node], everything: Calls) -> float:
    own = collections.Counter(node.name for node in nodes)
    whole = mine = 0.0
    for op in cost.ops:
        if op.phase != "forward" or is_product(op.name):
            continue
        name = op.name.removeprefix("aten::").rstrip("_")
        whole += op.device_ms
        mine += op.device_ms * own[name] / max(1, everything[cost.place, name])
    return mine / whole if whole > 0 else 1.0
