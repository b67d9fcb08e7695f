"""The share of a line's time that some recorded operators take."""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection
from dataclasses import dataclass

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.graph.constants import traffic
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.storages import VIEWS
from warpline.rulekit.kernels import is_product

#: Each of these is timed as one operator.
_COPYING, _COPIED = frozenset({"clone", "contiguous", "_to_copy"}), "aten::copy_"
#: Of what the engine runs; in the forward phase for ``autograd.grad(…, create_graph=True)``.
_NODE = "autograd::"
#: Of the count of an operator that runs equally often in each step.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Part:
    """What operators take of a line.

    ``share``: of the line's forward work, 0 to 1, by their times where all copies of the line are meant, else
    by the elements they read and write; ``step_ms``: what that costs a step.
    """

    cost: LineCost
    share: float
    step_ms: float

    @property
    def place(self) -> tuple[str, int]:
        return self.cost.place

    @property
    def left(self) -> float:
        """Share of the line's time that stays without it."""
        return max(0.0, 1 - self.step_ms / self.cost.step_ms) if self.cost.step_ms > 0 else 1.0


def parts(context: Context, graph: Graph, own: Collection[Node]) -> list[Part]:
    """The lines of ``own``, but those that compute a gradient: its operators are not recorded."""
    mine: collections.Counter[tuple[str, int]] = collections.Counter()
    whole: collections.Counter[tuple[str, int]] = collections.Counter()
    wanted = {node.index for node in own}
    copying: dict[tuple[str, int], set[bool]] = {}  # by line: whether those that copy are wanted
    lines = {place for node in own if (place := graph.place(node)) is not None}
    for node in graph.nodes:
        place = graph.place(node)
        if place in lines and node.name not in VIEWS:
            whole[place] += traffic(graph, node)
            mine[place] += traffic(graph, node) if node.index in wanted else 0
            if node.name in _COPYING or node.index in wanted:
                copies = node.name in _COPYING and node.index in wanted
                copying.setdefault(place, set()).add(copies)
    found = []
    for cost in context.costs(sorted(lines)):
        if any(op.phase == "forward" and op.name.startswith(_NODE) for op in cost.ops):
            continue
        share = mine[cost.place] / max(1, whole[cost.place])
        if copying.get(cost.place) == {True}:
            share = _timed(cost, lambda name: name == _COPIED) or share
        elif share < 1:
            share = min(share, 1 - (_timed(cost, is_product) or 0.0))
        found.append(Part(cost, share, share * _forward_ms(cost)))
    return found


def every_step(cost: LineCost) -> bool:
    """Whether the line's operators ran equally often, on tensors of the same sizes, in all captured steps."""
    return all(
        abs(op.count - round(op.count)) <= _ROUNDING * max(1.0, op.count)
        for op in cost.ops
        if op.phase == "forward"
    )


def _forward_ms(cost: LineCost) -> float:
    """What the line costs a step without its backward pass."""
    again = cost.backward_ms + cost.recompute_ms
    both = again + cost.forward_ms
    return cost.step_ms * (1 - again / both) if both > 0 else cost.step_ms


def _timed(cost: LineCost, wanted: Callable[[str], bool]) -> float | None:
    """Share of the line's forward operators' time that the ``wanted`` ones take; None where none is known."""
    forward = [op for op in cost.ops if op.phase == "forward"]
    whole = sum(op.device_ms for op in forward)
    return sum(op.device_ms for op in forward if wanted(op.name)) / whole if whole > 0 else None
