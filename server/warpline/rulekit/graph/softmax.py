"""Softmaxes and their logarithms: as one operator, or made of exponentials and sums."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.evaluate import Evaluation, cuts, only_guards
from warpline.rulekit.graph.graph import MOVED, Graph, Node, Ref
from warpline.rulekit.graph.match import PER_SITE, candidates
from warpline.rulekit.graph.norm import SAMPLES, TOLERANCE

SOFTMAX = frozenset({"_softmax", "softmax", "_safe_softmax"})
_LOGARITHMS = frozenset({"_log_softmax", "log_softmax"})
#: `exp` ends the one that is made of its logarithm.
_QUOTIENTS = frozenset({"div", "true_divide", "mul", "exp"})
_DIFFERENCES = frozenset({"sub", "log"})
_NORMALISERS = frozenset({"add", "log", "logsumexp"})
#: What keeps a number away from zero.
PADDINGS = frozenset({"add", "clamp", "clamp_min"})
_DIVISIONS = frozenset({"div", "true_divide"})
#: What takes some exponentials out of a sum.
_LEFT_OUT = frozenset({"mul", "masked_fill", "where", "masked_select", "index"})
_CUT = frozenset({"detach"})
#: What is computed of an entry and the sum of all exponentials.
_WANTED: dict[str, Callable[[float, float], float]] = {
    "share": lambda x, whole: math.exp(x) / whole,
    "logarithm": lambda x, whole: x - math.log(whole),
    "normaliser": lambda x, whole: math.log(whole),
}
#: Operators that are followed back at most.
_FAR = 12


@dataclass(frozen=True, slots=True)
class Softmax:
    input: int
    output: int
    size: int  # entries that sum to one
    nodes: tuple[Node, ...]


def softmaxes(graph: Graph) -> Iterator[Softmax]:
    """Every softmax of a step, those that are one operator first."""
    yield from _operators(graph, SOFTMAX)
    yield from _written(graph, _QUOTIENTS, "share")


def single_softmaxes(graph: Graph) -> Iterator[Softmax]:
    """Every softmax that is one operator."""
    yield from _operators(graph, SOFTMAX)


def log_softmaxes(graph: Graph) -> Iterator[Softmax]:
    """Every log-softmax of a step, as one operator or written out; written out, perhaps its negative."""
    yield from _operators(graph, _LOGARITHMS)
    yield from _written(graph, _DIFFERENCES, "logarithm")


def log_sum_exps(graph: Graph) -> Iterator[Softmax]:
    """Logarithms of a sum of exponentials, which is what a softmax divides by; ``output`` has one for each
    sum."""
    yield from _written(graph, _NORMALISERS, "normaliser")


def quotients(graph: Graph) -> Iterator[tuple[Softmax, Node]]:
    """Exponentials, some of them perhaps taken out, that are divided by their sum, with what divides. The
    exponentials may go through a product before: then that is the ``output``."""
    for total in candidates(graph, frozenset({"sum"})):
        weights = exponentials(graph, total.inputs[0])
        whole = graph.origin(total.inputs[0], MOVED)
        for padded, user in divided_by(graph, total, MOVED) if weights else ():
            size = graph.size(whole) // max(1, graph.size(total.outputs[0]))
            nodes = (*weights, total, *padded, user)
            yield Softmax(weights[0].inputs[0], whole, size, nodes), user


def divided_by(graph: Graph, total: Node, *more: frozenset[str]) -> Iterator[tuple[list[Node], Node]]:
    """The operators that divide by what ``total`` gives, perhaps kept away from zero, each with what does
    that. ``more``: also through these operators."""
    users = list(graph.uses(total.outputs[0], *more))
    padded = [user for user, _ in users if user.name in PADDINGS and only_guards(user)]
    for user, read in [*users, *(later for one in padded for later in graph.uses(one.outputs[0], *more))]:
        if user.name in _DIVISIONS and user.inputs[1:] == (read,):
            yield padded, user


def centred(graph: Graph, node: Node) -> Node | None:
    """The operator that finds each row's largest score, where ``node`` takes it off all, as a softmax does
    itself."""
    if node.name != "sub" or len(node.inputs) != 2:
        return None
    largest = graph.producer.get(graph.origin(node.inputs[1], _CUT))
    if largest is None or largest.name not in ("amax", "max"):
        return None
    same = graph.origin(largest.inputs[0], _CUT) == graph.origin(node.inputs[0], _CUT)
    return largest if same else None


def few_of_each(found: Iterable[Softmax]) -> Iterator[Softmax]:
    """At most ``PER_SITE`` softmaxes of each place that calls one."""
    seen: collections.Counter[int] = collections.Counter()
    for softmax in found:
        site = softmax.nodes[-1].site
        seen[site] += 1
        if seen[site] <= PER_SITE:
            yield softmax


def exponentials(graph: Graph, value: int) -> list[Node]:
    """The operators that made exponentials and took some of them out; empty where ``value`` is no such."""
    nodes: list[Node] = []
    given: tuple[int, ...] = (value,)
    for _ in range(_FAR):
        made = (graph.producer.get(graph.origin(one)) for one in given)
        node = next((one for one in made if one is not None and one.name in _LEFT_OUT | {"exp"}), None)
        if node is None:
            return []
        nodes.insert(0, node)
        if node.name == "exp":
            return nodes
        given = node.inputs
    return []


def written_softmaxes(graph: Graph) -> Iterator[tuple[Softmax, bool]]:
    """Every softmax that is made of more operators than one, and whether it is the logarithm of one."""
    for names, wanted in ((_QUOTIENTS, "share"), (_DIFFERENCES, "logarithm")):
        for softmax in _written(graph, names, wanted):
            yield softmax, wanted == "logarithm"


def _operators(graph: Graph, names: frozenset[str]) -> Iterator[Softmax]:
    for node in graph.nodes:
        if node.name in names and graph.site(node) is not None:
            found = _operator(graph, node)
            if found is not None:
                yield found


def _operator(graph: Graph, node: Node) -> Softmax | None:
    first, dim = node.argument(0, "self"), node.argument(1, "dim")
    if not isinstance(first, Ref) or not isinstance(dim, int) or not graph.shape(first.value):
        return None
    return Softmax(first.value, node.outputs[0], graph.shape(first.value)[dim], (node,))


def _written(graph: Graph, names: frozenset[str], wanted: str) -> Iterator[Softmax]:
    for node in candidates(graph, names):
        if wanted == "logarithm" and node.name == "log":
            best = _logarithm_of(graph, node)
        else:
            best = _largest(graph, node.outputs[0], wanted)
        if best is not None:
            yield best


def _largest(graph: Graph, output: int, wanted: str) -> Softmax | None:
    """The computation of most operators that makes ``output`` what is wanted of something."""
    found = (_of(graph, output, value, wanted) for value in cuts(graph, output, reductions=True))
    return max((one for one in found if one is not None), key=lambda one: len(one.nodes), default=None)


def _of(graph: Graph, output: int, value: int, wanted: str) -> Softmax | None:
    evaluation = Evaluation(graph, {value: SAMPLES}, reductions=True)
    numbers = evaluation.of(output)
    if numbers is None or evaluation.dims is None:
        return None
    whole = evaluation.entries * sum(math.exp(x) for x in SAMPLES) / len(SAMPLES)
    # The normaliser less the scores is the negative of a logarithm.
    sign = -1 if wanted == "logarithm" and numbers[0] > 0 else 1
    pairs = ((number, sign * _WANTED[wanted](x, whole)) for x, number in zip(SAMPLES, numbers, strict=True))
    if any(abs(a - b) > TOLERANCE * max(1e-3, abs(b)) for a, b in pairs):
        return None
    return Softmax(value, output, evaluation.entries, tuple(evaluation.nodes))


def _logarithm_of(graph: Graph, node: Node) -> Softmax | None:
    """The logarithm of a softmax of one operator, or of that and a small number."""
    value, nodes = graph.origin(node.inputs[0]) if node.inputs else -1, [node]
    while (before := graph.producer.get(value)) is not None and before.name in PADDINGS:
        if not only_guards(before):
            return None
        nodes.insert(0, before)
        value = graph.origin(before.inputs[0])
    if before is None:
        return None
    found = _operator(graph, before) if before.name in SOFTMAX else _largest(graph, value, "share")
    return found and Softmax(found.input, node.outputs[0], found.size, (*found.nodes, *nodes))
