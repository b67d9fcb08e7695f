"""The share of a line's time that some recorded operators take."""

from __future__ import annotations

import collections
from collections.abc import Collection
from dataclasses import dataclass

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.graph.constants import VIEWS, traffic
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.kernels import is_product

#: Of the count of an operator that runs equally often in each step.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Part:
    """``share``: of the line's forward work that is the operators', 0 to 1, by the elements they read and
    write; ``step_ms``: what that costs a step."""

    cost: LineCost
    share: float
    step_ms: float

    @property
    def place(self) -> tuple[str, int]:
        return self.cost.file, self.cost.line

    @property
    def left(self) -> float:
        """Share of the line's time that stays without it."""
        return max(0.0, 1 - self.step_ms / self.cost.step_ms) if self.cost.step_ms > 0 else 1.0


def parts(context: Context, graph: Graph, own: Collection[Node]) -> list[Part]:
    """The lines of the operators ``own``."""
    mine: collections.Counter[tuple[str, int]] = collections.Counter()
    whole: collections.Counter[tuple[str, int]] = collections.Counter()
    wanted = {node.index for node in own}
    lines = {(site.file, site.line) for node in own if (site := graph.site(node)) is not None}
    for node in graph.nodes:
        site = graph.site(node)
        if site is not None and (site.file, site.line) in lines and node.name not in VIEWS:
            whole[site.file, site.line] += traffic(graph, node)
            mine[site.file, site.line] += traffic(graph, node) if node.index in wanted else 0
    found = []
    for cost in context.costs(sorted(lines)):
        share = mine[cost.file, cost.line] / max(1, whole[cost.file, cost.line])
        share = min(share, _without_products(cost)) if share < 1 else share
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


def _without_products(cost: LineCost) -> float:
    """Share of the line's forward operators' time that is of no matrix product, convolution or attention."""
    forward = [op for op in cost.ops if op.phase == "forward"]
    whole = sum(op.device_ms for op in forward)
    return 1 - sum(op.device_ms for op in forward if is_product(op.name)) / whole if whole > 0 else 1.0
