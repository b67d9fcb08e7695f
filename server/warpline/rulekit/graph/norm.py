"""Normalisations: a tensor less its mean, over the root of its mean square."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from warpline.rulekit.graph.evaluate import Evaluation, cuts
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.match import Match, candidates, is_written_out, largest
from warpline.rulekit.graph.pointwise import Numbers

SAMPLES: Numbers = (-1.7, 0.9, 2.3, -0.2, 3.1, 1.4, -2.6, 0.5)
TOLERANCE = 1e-5
#: What is added to a variance is not larger than this.
MOST_EPS = 1e-2
_RESULTS = frozenset({"mul", "div", "true_divide", "addcmul", "addcdiv"})
_INSIDE = {
    "eps": "eps is added to the deviation instead of the variance, so the fused call gives other values",
    "size": "the variance is divided by the size minus one, but in the fused call by the size",
}


def norms(graph: Graph) -> list[Match]:
    """The normalisations that a step computes op by op. Overlapping matches: only the largest."""
    found = (_at(graph, node) for node in candidates(graph, _RESULTS))
    return largest(match for match in found if match is not None)


def _at(graph: Graph, result: Node) -> Match | None:
    best, most = None, 0  # ``most``: its operators, without those of gain and shift
    for value in cuts(graph, result.outputs[0], reductions=True):
        evaluation = Evaluation(graph, {value: SAMPLES}, reductions=True)
        numbers = evaluation.of(result.outputs[0])
        if numbers is None or evaluation.dims is None or len(evaluation.nodes) <= most:
            continue
        formed, times = _formed(evaluation, numbers, result)
        kind = _kind(graph, value, evaluation, *formed) if formed is not None else None
        if formed is None or kind is None or not is_written_out(graph, evaluation.nodes):
            continue
        most = len(evaluation.nodes)
        nodes, last = _with_parameters(graph, tuple(evaluation.nodes), result)
        words = tried_over(evaluation.dims, len(evaluation.reduced))
        best = Match(kind[0], times + kind[1], nodes, last, formed[1], words)
    return best


def _formed(evaluation: Evaluation, numbers: Numbers, result: Node) -> tuple[tuple[bool, str] | None, str]:
    """What ``form`` says, and "scale * " where the formula multiplies by a number before its end. That only
    for what is less its mean: other tensors are divided by their size for many reasons."""
    eps = _eps(evaluation)
    for factor in (1.0, *_factors(node for node in evaluation.nodes if node is not result)):
        found = form(tuple(number / factor for number in numbers), eps, evaluation.entries)
        if found is not None and (found[0] or factor == 1):
            return found, "scale * " if factor != 1 else ""
    return None, ""


def _factors(nodes: Iterable[Node]) -> Iterator[float]:
    """Numbers that the formula multiplies or divides by."""
    for node in nodes:
        given = node.arguments[-1] if node.name in ("mul", "div") and node.arguments else None
        if isinstance(given, (int, float)) and math.isfinite(given) and given:
            yield float(given)
            yield 1 / given


def tried_over(dims: Iterable[int], rank: int) -> tuple[str, ...]:
    """The dimensions as an option for trying such a norm; none where it is over the last one."""
    ordered = sorted(dims)
    return () if ordered in ([rank - 1], [-1]) else (f"dims={','.join(map(str, ordered))}",)


def form(numbers: Numbers, constants: set[float], real: int) -> tuple[bool, str] | None:
    """Whether the mean was taken off, and why the fused call would give something else, if it would."""
    for centred in (True, False):
        mean = sum(SAMPLES) / len(SAMPLES) if centred else 0.0
        spread = sum((x - mean) ** 2 for x in SAMPLES) / len(SAMPLES)
        rest = [x - mean for x in SAMPLES]
        for eps in sorted(constants):
            for reason, divisor in (
                ("", math.sqrt(spread + eps)),
                (_INSIDE["eps"], math.sqrt(spread) + eps),
                (_INSIDE["size"], math.sqrt(spread * real / max(1, real - 1) + eps)),
                (_INSIDE["eps"], math.sqrt(spread * real / max(1, real - 1)) + eps),
            ):
                wanted = (x / divisor for x in rest)
                if all(abs(a - b) <= TOLERANCE for a, b in zip(numbers, wanted, strict=True)):
                    return centred, reason
    return None


def _eps(evaluation: Evaluation) -> set[float]:
    """Small numbers that the formula has, and none."""
    found = {0.0, *(one for one in evaluation.constants if 0 < one <= MOST_EPS)}
    for node in evaluation.nodes:
        given = (*node.arguments, *node.named.values())
        found |= {float(one) for one in given if isinstance(one, float) and 0 < one <= MOST_EPS}
    return found


def _kind(
    graph: Graph, value: int, evaluation: Evaluation, centred: bool, reason: str
) -> tuple[str, str] | None:
    """What it is called, and the call; None over the batch, unless a batch norm computes just that.
    ``reason``: why it would not."""
    shape, dims = evaluation.reduced, evaluation.dims or frozenset()
    rank, given = len(shape), graph.shape(graph.origin(value))
    if 0 in dims and rank > 1:
        whole = centred and not reason and len(dims) == rank - 1
        return ("A BatchNorm", "F.batch_norm(..., training=True)") if whole else None
    if not centred:
        return ("An RMSNorm", "F.rms_norm") if dims == frozenset(range(rank - len(dims), rank)) else None
    spatial = frozenset(range(2, rank))
    viewed = len(given) > 2 and given != shape
    if dims == spatial and (given[:2] == shape[:2] if viewed else rank > 3):
        return "An InstanceNorm", "F.instance_norm"
    if viewed and given[:1] == shape[:1] and dims >= spatial:
        return "A GroupNorm", "F.group_norm"
    return "A LayerNorm", "F.layer_norm"


def _with_parameters(graph: Graph, nodes: tuple[Node, ...], result: Node) -> tuple[tuple[Node, ...], Node]:
    """The norm, extended by the product with a gain and the sum with a shift that follow it."""
    for name in ("mul", "add"):
        users = list(graph.uses(result.outputs[0]))
        if len(users) != 1 or users[0][0].name != name or len(users[0][0].inputs) != 2:
            continue
        node, read = users[0]
        other = next((value for value in node.inputs if value != read), read)
        if _is_parameter(graph, other) and graph.size(other) < graph.size(read):
            nodes, result = (*nodes, node), node
    return nodes, result


def _is_parameter(graph: Graph, value: int) -> bool:
    """A parameter, or one more than it (gains are kept less one)."""
    value = graph.origin(value)
    node = graph.producer.get(value)
    if node is not None and node.name == "add" and node.inputs:
        value = graph.origin(node.inputs[0])
    return value in graph.parameters
