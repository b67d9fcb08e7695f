"""Computes part of a graph at sample points.

A value is a tuple of numbers, one a sample. For a formula with reductions the samples are the entries along
the reduced dimensions, and a mean over them stands for the mean over the real ones: sums are scaled to the
real count. So a small sample tells a LayerNorm over 768 features from one that is not quite one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

from warpline.rulekit.graph.graph import SAME, Graph, Node, Ref
from warpline.rulekit.graph.pointwise import GUARD, POINTWISE, Numbers, function, one_sided

#: A formula of more operators than this is not looked for.
MOST_NODES = 32
CONSTANTS = frozenset({
    "scalar_tensor", "full", "full_like", "fill", "zeros", "zeros_like", "ones", "ones_like",
})  # fmt: skip
#: Their second result is the mean.
_PAIRS = frozenset({"var_mean", "std_mean"})
REDUCTIONS = frozenset({
    "mean", "sum", "var", "var_mean", "std", "std_mean", "amax", "max", "logsumexp", "linalg_vector_norm",
    "norm",
})  # fmt: skip


def computes(name: str, reductions: bool) -> bool:
    """Whether the operator can be computed at sample points."""
    return name in POINTWISE or name in SAME or name in CONSTANTS or (reductions and name in REDUCTIONS)


def cone(graph: Graph, value: int, reductions: bool = False) -> list[int]:
    """``value`` and the values that it is computed of, nearest first; those that are given come too."""
    found: dict[int, None] = {value: None}
    waiting = [value]
    while waiting and len(found) < MOST_NODES:
        node = graph.producer.get(waiting.pop(0))
        if node is None or not computes(node.name, reductions):
            continue
        for before in node.inputs:
            if before not in found:
                found[before] = None
                waiting.append(before)
    return list(found)


def leaves(
    graph: Graph, value: int, reductions: bool = False, constants: bool = False
) -> dict[int, frozenset[int]]:
    """The values of the cone of ``value``, each with those of them that it is made of and that are given.

    ``constants``: tensors filled with one number count as given, but not a single number."""
    inside = cone(graph, value, reductions)
    known = set(inside)
    found: dict[int, frozenset[int]] = {}

    def of(one: int) -> frozenset[int]:
        if one not in found:
            found[one] = frozenset([one])
            node = graph.producer.get(one)
            if node is not None and computes(node.name, reductions):
                before = [value for value in node.inputs if value in known]
                if node.name in CONSTANTS:
                    found[one] = frozenset([one] if constants and graph.size(one) > 1 else [])
                elif before and len(before) == len(node.inputs):
                    found[one] = frozenset().union(*map(of, before))
        return found[one]

    for one in inside:
        of(one)
    return found


def cuts(graph: Graph, value: int, reductions: bool = False) -> list[int]:
    """The values that ``value`` depends on, and no others: every way back to what is given leads through
    them."""
    reached = leaves(graph, value, reductions)
    candidates = [one for one, given in reached.items() if one != value and given == reached[value]]
    return [one for one in candidates if _leads_through(graph, value, one, reached)]


def _leads_through(graph: Graph, value: int, cut: int, reached: dict[int, frozenset[int]]) -> bool:
    waiting, seen = [value], {value, cut}
    while waiting:
        one = waiting.pop()
        if one in reached[one]:
            return False  # it is given
        before = graph.producer[one].inputs if reached[one] else ()
        fresh = [other for other in before if other not in seen]
        seen.update(fresh)
        waiting += fresh
    return True


class Evaluation:
    """``given``: samples of some values. ``nodes``: the operators that were computed; ``dims`` and
    ``reduced`` (the shape that was reduced) are set where they reduce."""

    def __init__(self, graph: Graph, given: Mapping[int, Numbers], reductions: bool = False) -> None:
        self.graph = graph
        self.known: dict[int, Numbers | None] = dict(given)
        self.count = len(next(iter(given.values())))
        self.reductions = reductions
        self.nodes: dict[Node, None] = {}
        self.constants: set[float] = set()  # that tensors were filled with
        self.dims: frozenset[int] | None = None
        self.reduced: tuple[int, ...] = ()
        self._computed = 0

    @property
    def entries(self) -> int:
        """How many entries are reduced to one; 1 where nothing is reduced."""
        return math.prod(self.reduced[dim] for dim in self.dims or ())

    def of(self, value: int) -> Numbers | None:
        """The value at the samples, None where it is made of something else too."""
        if value not in self.known:
            self.known[value] = None
            self._computed += 1
            if self._computed <= 2 * MOST_NODES:
                with contextlib.suppress(ArithmeticError, ValueError, TypeError):
                    self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: int) -> Numbers | None:
        node = self.graph.producer.get(value)
        if node is None or not computes(node.name, self.reductions):
            return None
        if node.name in CONSTANTS:
            return self._constant(node)
        if node.name in SAME:
            return self._argument(node.arguments[0])
        found = self._reduction(node, value) if node.name in REDUCTIONS else self._pointwise(node)
        if found is not None:
            self.nodes[node] = None
        return found

    def _constant(self, node: Node) -> Numbers | None:
        number: Any = {"zeros": 0.0, "ones": 1.0}.get(node.name.removesuffix("_like"))
        if number is None:
            number = node.arguments[0] if node.name == "scalar_tensor" else node.argument(1, "fill_value")
        if isinstance(number, float):
            self.constants.add(number)
        return self._argument(number)

    def _pointwise(self, node: Node) -> Numbers | None:
        compute = function(node.name, node.named)
        if compute is None:
            return None
        columns = [self._argument(one) for one in node.arguments]
        if any(
            column is None and one is not None for column, one in zip(columns, node.arguments, strict=True)
        ):
            return None
        if any(limit > GUARD for limit in one_sided(node.name, node.named, columns)):
            return None
        rows = ([None if column is None else column[at] for column in columns] for at in range(self.count))
        return tuple(float(compute(*row)) for row in rows)

    def _argument(self, argument: Any) -> Numbers | None:
        if isinstance(argument, Ref):
            return self.of(argument.value)
        if isinstance(argument, (int, float)):
            return (float(argument),) * self.count
        return None

    def _reduction(self, node: Node, value: int) -> Numbers | None:
        means = _means(self.graph, node)
        first = means[-1].arguments[0]
        numbers = self._argument(first)
        output = node.outputs.index(value)
        if numbers is None or not isinstance(first, Ref) or (output and node.name not in _PAIRS):
            return None
        shape = self.graph.shape(first.value)
        dims = frozenset().union(*(dims_of(one, len(shape)) for one in means))
        if self.dims is not None and (dims, shape) != (self.dims, self.reduced):
            return None
        self.dims, self.reduced = dims, shape
        self.nodes |= dict.fromkeys(means[1:])
        found = _reduced(node, numbers, self.entries, output)
        return None if found is None else (found,) * self.count


def _means(graph: Graph, node: Node) -> list[Node]:
    """A reduction, and the means before it that it is one with, as they keep their dimensions."""
    found = [node]
    while found[-1].name == "mean" and isinstance(first := found[-1].arguments[0], Ref):
        before = graph.producer.get(first.value)
        if before is None or before.name != "mean" or before.argument(2, "keepdim") is not True:
            break
        found.append(before)
    return found


def only_guards(node: Node) -> bool:
    """Whether an ``add`` or ``clamp`` of a probability only keeps its logarithm finite: by a number of at
    most ``GUARD``, or a limit as near to 0 or 1."""
    numbers = [*node.arguments[1:], *(node.named.get(name) for name in ("min", "max"))]
    given = [one for one in numbers if one is not None]
    if len(node.inputs) != 1 or not all(isinstance(one, (int, float)) for one in given):
        return False
    return all(0 <= one <= GUARD or (node.name != "add" and abs(one - 1) <= GUARD) for one in given)


def dims_of(node: Node, rank: int) -> frozenset[int]:
    """The dimensions over which a reduction of a tensor with ``rank`` dimensions runs."""
    at = 2 if node.name in ("linalg_vector_norm", "norm") else 1
    dims = node.argument(at, "dim")
    if isinstance(dims, int) and not isinstance(dims, bool):
        dims = (dims,)
    if not isinstance(dims, tuple) or not dims:
        dims = tuple(range(rank))
    return frozenset(dim % max(rank, 1) for dim in dims)


def _reduced(node: Node, numbers: Numbers, real: int, output: int) -> float | None:
    """Over ``real`` numbers; ``numbers`` are a sample of them."""
    mean = sum(numbers) / len(numbers)
    if node.name == "mean" or (node.name in _PAIRS and output == 1):
        return mean
    if node.name == "sum":
        return mean * real
    if node.name in ("amax", "max"):
        return max(numbers)
    if node.name == "logsumexp":
        return math.log(real * sum(math.exp(one) for one in numbers) / len(numbers))
    if node.name in ("linalg_vector_norm", "norm"):
        order = node.argument(1, "ord", 2)
        return (
            math.sqrt(real * sum(one * one for one in numbers) / len(numbers)) if order in (2, None) else None
        )
    correction = node.named.get("correction", 1)
    if len(node.arguments) > 2 and isinstance(node.arguments[2], bool):
        correction = int(node.arguments[2])
    spread = sum((one - mean) ** 2 for one in numbers) / len(numbers)
    spread *= real / (real - (1 if correction is None else correction))
    return math.sqrt(spread) if node.name in ("std", "std_mean") else spread
