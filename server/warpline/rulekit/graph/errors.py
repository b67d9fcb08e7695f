"""Errors between two tensors, added up: squared, absolute and smooth ones, and binary cross entropy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from warpline.rulekit.graph.evaluate import Evaluation, leaves, only_guards
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.match import Match, candidates, is_written_out
from warpline.rulekit.graph.pointwise import POINTWISE, Numbers, softplus

#: Samples of a prediction and a target: errors small and large, of both signs.
FIRST: Numbers = (-2.9, -1.2, -0.31, -0.04, 0.02, 0.17, 0.6, 1.4, 3.2, -0.8, 2.1)
SECOND: Numbers = (0.7, 0.12, 0.33, 0.03, 0.9, 0.21, 0.55, 0.08, 0.41, 0.95, 0.66)
#: And of a factor of what is there, where that has one of its own.
FACTORS: Numbers = (1.7, 0.6, 2.2, 1.1, 3.1, 0.8, 1.3, 2.7, 0.4, 1.9, 2.4)
PROBABILITIES: Numbers = (0.07, 0.92, 0.41, 0.03, 0.88, 0.17, 0.6, 0.35, 0.74, 0.5, 0.26)
#: Samples of a target that is true or false, which a formula may choose by.
CHOICES: Numbers = (1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0)
#: Largest difference of a formula's values from an error's, as a share. Both are computed in float64, so the
#: same formula differs by far less.
TOLERANCE = 1e-4
SUMS = frozenset({"mean", "sum"})
#: An error goes through these, and no others, before it is added up.
ON_ERRORS = frozenset(
    {"mul", "neg", "div", "true_divide", "add", "sub", "masked_fill", "where", "sqrt", "index"}
)
_ENTROPY = "Binary cross entropy"
_GUARDED = frozenset({"add", "clamp", "clamp_min"})
_LOGARITHMS = frozenset({"log", "log1p", "log_sigmoid_forward", "logaddexp", "softplus", "xlogy"})
#: Operators between an error and its sum, or between scores and a loss, that are followed.
FAR = 12
#: Where a smooth error becomes linear, at most: the samples' errors go up to 2.8.
MOST_BETA = 2.5

Error = Callable[[float, float], float]
#: Kind, call and operators.
_Found = tuple[str, str, tuple[Node, ...]]
_NO_MASK: Mapping[int, Numbers] = {}


def errors(graph: Graph) -> Iterator[Match]:
    for node in candidates(graph, POINTWISE):
        tail = added_up(graph, node)
        found = _error(graph, node) if tail is not None else None
        if tail is not None and found is not None:
            kind, call, nodes = found
            nodes = (*nodes, *tail)
            if not is_written_out(graph, nodes) or _rooted(tail):
                continue
            if any(len(one.inputs) > 1 for one in tail):  # weights or masks stay, and with them the sum
                yield Match(kind, _of_each(call), nodes, node)
            else:
                yield Match(kind, call, nodes, nodes[-1])


def _rooted(tail: Sequence[Node]) -> bool:
    """Whether a root is taken before all is added up, as for a mean of distances, which is no such error."""
    sums = [at for at, node in enumerate(tail) if node.name in SUMS]
    return any(node.name == "sqrt" for node in tail[: sums[-1]])


def added_up(graph: Graph, node: Node) -> tuple[Node, ...] | None:
    """The operators from ``node`` to the sum or mean of its result; None where it is not added up."""
    nodes: list[Node] = []
    value = node.outputs[0]
    for _ in range(FAR):
        users = [user for user, _ in graph.uses(value)]
        sums = [user for user in users if user.name in SUMS]
        if sums:
            nodes.append(sums[0])
            value = sums[0].outputs[0]
            if graph.size(value) == 1:
                return tuple(nodes)
            continue
        further = [user for user in users if user.name in ON_ERRORS]
        if len(users) != 1 or not further:
            return None
        nodes.append(further[0])
        value = further[0].outputs[0]
    return None


def _error(graph: Graph, result: Node) -> _Found | None:
    """Kind and call of the error that ``result`` is, and its operators."""
    plain = leaves(graph, result.outputs[0])
    for reached in (plain, leaves(graph, result.outputs[0], constants=True)):
        if reached == plain and reached is not plain:
            break  # else a tensor filled with one number may be one of the two
        for way in (_between, _masked, _factored):
            found = [
                one
                for first, second, factor in _pairs(graph, result, reached)
                if (one := way(graph, result, first, second, factor)) is not None
            ]
            if found:
                return max(found, key=lambda one: len(one[2]))
    return None


def _pairs(
    graph: Graph, result: Node, reached: Mapping[int, frozenset[int]]
) -> Iterator[tuple[int, int, int | None]]:
    """Two tensors that ``result`` is made of, and a third that it may be made of, too; and nothing else."""
    size, everything = graph.size(result.outputs[0]), reached[result.outputs[0]]
    given = [value for value in reached if graph.size(value) == size and reached[value]]
    for first, second in itertools.permutations(given, 2):
        rest = everything - reached[first] - reached[second]
        if reached[first] & reached[second]:
            continue
        factor = next((value for value in reached if rest and reached[value] == rest), None)
        if not rest or factor is not None:
            yield first, second, factor


def _factored(graph: Graph, result: Node, first: int, second: int, factor: int | None) -> _Found | None:
    """Binary cross entropy in which what is there has a factor of its own: a number, or a tensor."""
    targets = _targets(graph, second)
    factors = {factor: FACTORS} if factor is not None else {}
    evaluation = Evaluation(graph, {first: FIRST, second: targets, **factors})
    numbers = evaluation.of(result.outputs[0])
    nodes = tuple(evaluation.nodes)
    if numbers is None or len(nodes) < 2 or not any(node.name in _LOGARITHMS for node in nodes):
        return None
    if not _weighs(numbers, targets, factor is not None):
        return None
    return _ENTROPY, "F.binary_cross_entropy_with_logits(..., pos_weight=...)", nodes


def _masked(graph: Graph, result: Node, first: int, second: int, factor: int | None) -> _Found | None:
    """An error that is taken of what a mask leaves: it is the error where that is one, and nothing where it
    is zero. A mask that is laid over a whole error stays beside it."""
    if factor is None or factor in map(graph.origin, result.inputs):
        return None
    none = Evaluation(graph, {first: FIRST, second: SECOND, factor: (0.0,) * len(FIRST)})
    if none.of(result.outputs[0]) != (0.0,) * len(FIRST):
        return None
    found = _between(graph, result, first, second, None, {factor: (1.0,) * len(FIRST)})
    return found and (found[0], _of_each(found[1]), found[2])


def _of_each(call: str) -> str:
    """The call of an error that is not added up."""
    return f'{call}(..., reduction="none")' if call and "(" not in call else call


def _targets(graph: Graph, value: int) -> Numbers:
    """Samples of a target, by its type."""
    return CHOICES if graph.dtype(value) == "bool" else SECOND


def _weighs(numbers: Numbers, targets: Numbers, factored: bool) -> bool:
    """Whether ``numbers`` are the cross entropy of what is there times one number plus that of what is not
    times another one. ``factored``: the former times ``FACTORS``, too."""
    there = [y * softplus(-x) for x, y in zip(FIRST, targets, strict=True)]
    if factored:
        there = [one * factor for one, factor in zip(there, FACTORS, strict=True)]
    absent = [(1 - y) * softplus(x) for x, y in zip(FIRST, targets, strict=True)]
    # The least squares of two unknowns, by Cramer's rule.
    aa, bb = sum(a * a for a in there), sum(b * b for b in absent)
    ab = sum(a * b for a, b in zip(there, absent, strict=True))
    an = sum(a * n for a, n in zip(there, numbers, strict=True))
    bn = sum(b * n for b, n in zip(absent, numbers, strict=True))
    whole = aa * bb - ab * ab
    one, other = (an * bb - bn * ab) / whole, (bn * aa - an * ab) / whole
    size = max(abs(one), abs(other))
    if one * other <= 0 or not math.isfinite(size):
        return False
    wanted = (one * a + other * b for a, b in zip(there, absent, strict=True))
    return all(abs(n - w) <= TOLERANCE * max(abs(w), size) for n, w in zip(numbers, wanted, strict=True))


def _between(
    graph: Graph,
    result: Node,
    first: int,
    second: int,
    factor: int | None,
    mask: Mapping[int, Numbers] = _NO_MASK,
) -> _Found | None:
    """An error between two tensors, and of nothing else."""
    if factor is not None:
        return None
    targets = _targets(graph, second)
    for samples in (FIRST, PROBABILITIES):
        evaluation = Evaluation(graph, {first: samples, second: targets, **mask})
        numbers = evaluation.of(result.outputs[0])
        nodes = tuple(evaluation.nodes)
        if numbers is None or len(nodes) < 2:
            continue
        # A small number beside a square, as a root needs it, makes another function where errors are small.
        guarded = any(node.arguments[1:] and only_guards(node) for node in nodes if node.name in _GUARDED)
        for kind, call, error in forms(_constants(nodes)):
            if fits(numbers, error, samples, targets) and (not guarded or kind == _ENTROPY):
                return kind, call, nodes
    return None


def forms(constants: set[float]) -> Iterator[tuple[str, str, Error]]:
    """Kind, call and formula of each error; smooth ones become linear at one of ``constants``, or at 1."""
    yield "A squared error", "F.mse_loss", lambda x, y: (x - y) ** 2
    yield "An absolute error", "F.l1_loss", lambda x, y: abs(x - y)
    yield (
        _ENTROPY,
        "F.binary_cross_entropy_with_logits",
        lambda x, y: softplus(x) - x * y,
    )
    yield _ENTROPY, "F.binary_cross_entropy", _binary
    for delta in sorted(constants | {1.0}):
        yield (
            "A smooth absolute error",
            "F.smooth_l1_loss(..., beta=...)" if delta != 1 else "F.smooth_l1_loss",
            partial(smooth, delta),
        )
    yield "The logarithm of a hyperbolic cosine", "", lambda x, y: math.log(math.cosh(x - y))


def smooth(beta: float, x: float, y: float) -> float:
    """An absolute error that is a squared one up to ``beta``."""
    size = abs(x - y)
    return 0.5 * size**2 / beta if size < beta else size - beta / 2


def _binary(p: float, y: float) -> float:
    return -(y * math.log(p) + (1 - y) * math.log(1 - p))


def _constants(nodes: tuple[Node, ...]) -> set[float]:
    given = (one for node in nodes for one in (*node.arguments, *node.named.values()))
    return {
        float(one)
        for one in given
        if isinstance(one, (int, float)) and not isinstance(one, bool) and 0 < one < MOST_BETA
    }


def fits(
    numbers: Numbers, error: Error, samples: Numbers, targets: Numbers, factor: float | None = None
) -> bool:
    """Whether ``numbers`` are the error's values, all multiplied by one ``factor``, whatever it is."""
    try:
        wanted = [error(x, y) for x, y in zip(samples, targets, strict=True)]
    except ValueError:
        return False
    if factor is None:
        factor = numbers[0] / wanted[0] if wanted[0] else 0.0
    if not factor or not math.isfinite(factor):
        return False
    return all(
        abs(a - factor * b) <= TOLERANCE * max(abs(factor * b), abs(factor))
        for a, b in zip(numbers, wanted, strict=True)
    )
