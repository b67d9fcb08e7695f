"""Losses: an error between two tensors, or the logarithm of the probability of a class, added up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from warpline.rulekit.graph.evaluate import CONSTANTS, Evaluation, leaves
from warpline.rulekit.graph.graph import MOVED, Graph, Node
from warpline.rulekit.graph.match import PER_SITE, Match, candidates, is_written_out, largest
from warpline.rulekit.graph.pointwise import POINTWISE, Numbers, softplus
from warpline.rulekit.graph.softmax import log_softmaxes, log_sum_exps, softmaxes

#: Samples of a prediction and a target: errors small and large, of both signs.
FIRST: Numbers = (-2.9, -1.2, -0.31, -0.04, 0.02, 0.17, 0.6, 1.4, 3.2, -0.8, 2.1)
SECOND: Numbers = (0.7, 0.12, 0.33, 0.03, 0.9, 0.21, 0.55, 0.08, 0.41, 0.95, 0.66)
PROBABILITIES: Numbers = (0.07, 0.92, 0.41, 0.03, 0.88, 0.17, 0.6, 0.35, 0.74, 0.5, 0.26)
TOLERANCE = 1e-4
_SUMS = frozenset({"mean", "sum"})
#: An error goes through these, and no others, before it is added up.
_ON_ERRORS = frozenset(
    {"mul", "neg", "div", "true_divide", "add", "sub", "masked_fill", "where", "sqrt", "index"}
)
_CHOICES = frozenset(
    {"gather", "index", "select", "masked_select", "index_select", "take_along_dim", "nll_loss_forward"}
)
_PICKS = frozenset({"gather", "index", "take_along_dim"})
_CHOSEN = frozenset({"scatter", "one_hot", "eq", "index_put", "scatter_add"})
_LOOK_UPS = frozenset({"index", "index_select", "embedding"})
_FAR = 12
#: A logarithm of a softmax of more operators is made of exponentials and sums.
_SOFTMAX_NODES = 2
#: Where a smooth error turns straight: the samples' errors go up to 2.8.
MOST_BETA = 2.5

Error = Callable[[float, float], float]


def losses(graph: Graph) -> list[Match]:
    """The losses that a step computes op by op. Overlapping matches: only the largest."""
    return largest([*_errors(graph), *_cross_entropies(graph), *_apart(graph), *_of_shares(graph)])


# -- of two tensors --------------------------------------------------------------------------------


def _errors(graph: Graph) -> Iterator[Match]:
    for node in candidates(graph, POINTWISE):
        tail = _added_up(graph, node)
        found = _error(graph, node) if tail is not None else None
        if tail is not None and found is not None:
            kind, call, nodes = found
            nodes = (*nodes, *tail)
            if not is_written_out(graph, nodes):
                continue
            if any(len(one.inputs) > 1 for one in tail):  # weights or masks stay, and with them the sum
                call = f'{call}(..., reduction="none")' if call and "(" not in call else call
                yield Match(kind, call, nodes, node)
            else:
                yield Match(kind, call, nodes, nodes[-1])


def _added_up(graph: Graph, node: Node) -> tuple[Node, ...] | None:
    """The operators from ``node`` to the sum or mean of its result; None where it is not added up."""
    nodes: list[Node] = []
    value = node.outputs[0]
    for _ in range(_FAR):
        users = [user for user, _ in graph.uses(value)]
        sums = [user for user in users if user.name in _SUMS]
        if sums:
            nodes.append(sums[0])
            value = sums[0].outputs[0]
            if graph.size(value) == 1:
                return tuple(nodes)
            continue
        further = [user for user in users if user.name in _ON_ERRORS]
        if len(users) != 1 or not further:
            return None
        nodes.append(further[0])
        value = further[0].outputs[0]
    return None


def _error(graph: Graph, result: Node) -> tuple[str, str, tuple[Node, ...]] | None:
    """Kind and call of the error that ``result`` is, and its operators."""
    size = graph.size(result.outputs[0])
    reached = leaves(graph, result.outputs[0], constants=True)
    everything = reached[result.outputs[0]]
    given = [value for value in reached if graph.size(value) == size and reached[value]]
    best: tuple[str, str, tuple[Node, ...]] | None = None
    for first in given:
        for second in given:
            # Two tensors that the formula is made of, and nothing else.
            if reached[first] & reached[second] or reached[first] | reached[second] != everything:
                continue
            found = _between(graph, result, first, second)
            if found is not None and (best is None or len(found[2]) > len(best[2])):
                best = found
    return best


def _between(graph: Graph, result: Node, first: int, second: int) -> tuple[str, str, tuple[Node, ...]] | None:
    for samples, targets in ((FIRST, SECOND), (PROBABILITIES, SECOND)):
        evaluation = Evaluation(graph, {first: samples, second: targets})
        numbers = evaluation.of(result.outputs[0])
        nodes = tuple(evaluation.nodes)
        if numbers is None or len(nodes) < 2:
            continue
        for kind, call, error in forms(_constants(nodes)):
            if _fits(numbers, error, samples, targets):
                return kind, call, nodes
    return None


def forms(constants: set[float]) -> Iterator[tuple[str, str, Error]]:
    """Kind, call and formula of each error; smooth ones turn straight at one of ``constants``, or at 1."""
    yield "A squared error", "F.mse_loss", lambda x, y: (x - y) ** 2
    yield "An absolute error", "F.l1_loss", lambda x, y: abs(x - y)
    yield (
        "Binary cross entropy",
        "F.binary_cross_entropy_with_logits",
        lambda x, y: softplus(x) - x * y,
    )
    yield "Binary cross entropy", "F.binary_cross_entropy", _binary
    for delta in sorted(constants | {1.0}):
        yield (
            "A smooth absolute error",
            "F.smooth_l1_loss(..., beta=...)" if delta != 1 else "F.smooth_l1_loss",
            lambda x, y, d=delta: 0.5 * (x - y) ** 2 / d if abs(x - y) < d else abs(x - y) - d / 2,  # type: ignore[misc]
        )
    yield "The logarithm of a hyperbolic cosine", "", lambda x, y: math.log(math.cosh(x - y))


def _binary(p: float, y: float) -> float:
    return -(y * math.log(p) + (1 - y) * math.log(1 - p))


def _constants(nodes: tuple[Node, ...]) -> set[float]:
    given = (one for node in nodes for one in (*node.arguments, *node.named.values()))
    return {
        float(one)
        for one in given
        if isinstance(one, (int, float)) and not isinstance(one, bool) and 0 < one < MOST_BETA
    }


def _fits(numbers: Numbers, error: Error, samples: Numbers, targets: Numbers) -> bool:
    """Whether ``numbers`` are the error times one factor."""
    try:
        wanted = [error(x, y) for x, y in zip(samples, targets, strict=True)]
    except ValueError:
        return False
    factor = numbers[0] / wanted[0] if wanted[0] else 0.0
    if not factor or not math.isfinite(factor):
        return False
    return all(
        abs(a - factor * b) <= TOLERANCE * max(abs(factor * b), abs(factor))
        for a, b in zip(numbers, wanted, strict=True)
    )


# -- of scores and classes -------------------------------------------------------------------------


def _cross_entropies(graph: Graph) -> Iterator[Match]:
    seen: dict[int, int] = {}
    for softmax in log_softmaxes(graph):
        site = softmax.nodes[-1].site
        nodes = _negative_mean(graph, softmax.output) if seen.get(site, 0) < PER_SITE else None
        seen[site] = seen.get(site, 0) + 1
        if nodes is not None and is_written_out(graph, (*softmax.nodes, *nodes)):
            whole = (*softmax.nodes, *nodes)
            # torch's own cross entropy is a logarithm of a softmax and this loss, too.
            if len(whole) > 2 or nodes[-1].name != "nll_loss_forward":
                words = ["one_hot"] * any(node.name in _CHOSEN | {"eye"} for node in nodes)
                words += ["by_hand"] * (len(softmax.nodes) > _SOFTMAX_NODES)
                yield Match("Cross entropy", "F.cross_entropy", whole, nodes[-1], words=tuple(words))


def _apart(graph: Graph) -> Iterator[Match]:
    """Cross entropies as ``logsumexp(scores) - scores[class]``: no logarithm of a softmax is made."""
    for found in log_sum_exps(graph):
        for difference, _ in graph.uses(found.output):
            tail = _added_up(graph, difference) if difference.name == "sub" else None
            picked = _picked(graph, difference, found.input) if tail is not None else None
            if tail is None or picked is None:
                continue
            nodes = (*found.nodes, picked, difference, *tail)
            if is_written_out(graph, nodes):
                yield Match("Cross entropy", "F.cross_entropy", nodes, nodes[-1])
                break


def _of_shares(graph: Graph) -> Iterator[Match]:
    """Cross entropies as the logarithm of the one probability that was picked of a softmax."""
    seen: dict[int, int] = {}
    for softmax in softmaxes(graph):
        site = softmax.nodes[-1].site
        seen[site] = seen.get(site, 0) + 1
        if seen[site] > PER_SITE:
            continue
        for pick, _ in graph.uses(softmax.output):
            logarithm = _logarithm_of(graph, pick) if pick.name in _CHOICES else None
            tail = _added_up(graph, logarithm[-1]) if logarithm else None
            if logarithm is None or tail is None:
                continue
            nodes = (*softmax.nodes, pick, *logarithm, *tail)
            if is_written_out(graph, nodes):
                yield Match("Cross entropy", "F.cross_entropy", nodes, nodes[-1])
                break


def _logarithm_of(graph: Graph, pick: Node) -> list[Node] | None:
    """The operators from a picked probability to its logarithm, perhaps kept away from zero; else None."""
    nodes: list[Node] = []
    value = pick.outputs[0]
    for _ in range(3):
        users = [node for node, _ in graph.uses(value)]
        if len(users) != 1 or users[0].name not in ("log", "add", "clamp", "clamp_min"):
            return None
        if len(users[0].inputs) > 1:  # a mixture of two probabilities
            return None
        nodes.append(users[0])
        if users[0].name == "log":
            return nodes
        value = users[0].outputs[0]
    return None


def _picked(graph: Graph, difference: Node, scores: int) -> Node | None:
    """The operator that picks the scores of the classes for ``difference``."""
    for value in difference.inputs:
        node = graph.producer.get(graph.origin(value))
        if node is not None and node.name == "select" and graph.size(node.inputs[0]) == graph.size(value):
            node = graph.producer.get(graph.origin(node.inputs[0]))  # `[..., 0]` of one entry, a squeeze
        if node is not None and node.name in _PICKS and graph.origin(node.inputs[0]) == graph.origin(scores):
            return node
    return None


def _negative_mean(graph: Graph, value: int) -> list[Node] | None:
    """All operators from the log-probabilities to their mean or sum; None where no class is picked."""
    found: dict[Node, None] = {}
    waiting, picked, ended = [value], False, False
    for _ in range(4 * _FAR):
        if not waiting:
            break
        for node, _ in graph.uses(waiting.pop(0)):
            if node in found or node.name not in _SUMS | _CHOICES | _ON_ERRORS:
                continue
            found[node] = None
            made = _class_vector(graph, node) if node.name == "mul" else []
            found.update(dict.fromkeys(made))
            picked |= node.name in _CHOICES or bool(made)
            if graph.size(node.outputs[0]) == 1:
                ended = True
            else:
                waiting.append(node.outputs[0])
    ordered = sorted(found, key=lambda node: node.index)
    return ordered if picked and ended else None


def _class_vector(graph: Graph, node: Node) -> list[Node]:
    """The operators that made one factor of class numbers: a one-hot vector, smoothed or not."""
    paths: list[tuple[int, list[Node]]] = [(value, []) for value in node.inputs]
    for _ in range(_FAR):
        if not paths:
            break
        value, nodes = paths.pop(0)
        before = graph.producer.get(graph.origin(value, MOVED))
        if before is not None and before.name in _CHOSEN:
            filled = graph.producer.get(graph.origin(before.inputs[0])) if before.inputs else None
            return [*nodes, before, *([filled] if filled is not None and filled.name in CONSTANTS else [])]
        if before is not None and before.name in _LOOK_UPS:
            made = [graph.producer.get(graph.origin(one, MOVED)) for one in before.inputs]
            identity = [one for one in made if one is not None and one.name == "eye"]
            if identity:
                return [*nodes, before, *identity]
        if before is not None and before.name in POINTWISE:
            paths += [(one, [*nodes, before]) for one in before.inputs]
    return []
