"""Losses: an error between two tensors, or the logarithm of the probability of a class, added up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpline.rulekit.graph.errors import FAR, ON_ERRORS, SUMS, TOLERANCE, added_up, errors
from warpline.rulekit.graph.evaluate import CONSTANTS, Evaluation, dims_of, only_guards
from warpline.rulekit.graph.graph import MOVED, Graph, Node
from warpline.rulekit.graph.match import Match, candidates, is_written_out, largest
from warpline.rulekit.graph.pointwise import POINTWISE
from warpline.rulekit.graph.softmax import (
    PADDINGS,
    centred,
    divided_by,
    exponentials,
    few_of_each,
    log_softmaxes,
    log_sum_exps,
    softmaxes,
)

_CHOICES = frozenset(
    {"gather", "index", "select", "masked_select", "index_select", "take_along_dim", "nll_loss_forward"}
)
_PICKS = frozenset({"gather", "index", "take_along_dim"})
#: What makes a vector of a class, and how many tensors it is given: `eq` compares with all classes.
_OF_CLASSES = {"scatter": 1, "one_hot": 1, "eq": 2, "ne": 2, "index_put": 1, "scatter_add": 1}
_CHOSEN = frozenset(_OF_CLASSES)
#: What takes the numbers of the classes and leaves out all others.
_LEAVES_OUT = frozenset({"mul", "where", "masked_fill"})
_LOOK_UPS = frozenset({"index", "index_select", "embedding"})
_SCALES = frozenset({"mul", "div", "true_divide"})
#: Where the class is at a fixed distance, as a second view's is, it is read off a diagonal.
_DIAGONALS = frozenset({"diagonal", "diagonal_copy"})
_SELECTIONS = _CHOICES | _DIAGONALS
#: What torch's own cross entropy computes.
_OWN = frozenset({"_log_softmax", "nll_loss_forward"})
#: What computes with all probabilities, which a cross entropy does not give.
_COMPUTES = frozenset({"mul", "div", "true_divide", "add", "sub", "rsub", "log", "mm", "bmm", "matmul"})
#: The finding where a sum may leave the picked exponential out, as decoupled losses do, or weigh some.
_SHARE = "The logarithm of a share of exponentials"
_ONLY_IF = (
    "`F.cross_entropy` computes the same only if each sum includes the exponential that is divided by it, "
    "and has no weights; what it leaves out has to be -inf in the scores"
)
_LEFT_OUT_OF_IT = (
    "in the scores that `F.cross_entropy` gets, what the sum leaves out has to be -inf (and the logarithm of "
    "a weight to be added)"
)
#: A logarithm of a softmax of more operators is made of exponentials and sums.
_SOFTMAX_NODES = 2


def losses(graph: Graph) -> list[Match]:
    """The losses that a step computes op by op. Overlapping matches: only the largest."""
    ways = (_cross_entropies, _apart, _of_shares, _of_totals, _of_masked_sums)
    return largest(
        _of_rows(graph, one) for one in (*errors(graph), *(one for way in ways for one in way(graph)))
    )


def _of_rows(graph: Graph, match: Match) -> Match:
    """The loss, placed at its last operator with more than one result: the sums after it take little time."""
    rows = [node for node in match.nodes if graph.size(node.outputs[0]) > 1]
    whole = not rows or match.result is not match.nodes[-1]
    return match if whole else replace(match, result=max(rows, key=lambda node: node.index))


def _cross_entropies(graph: Graph) -> Iterator[Match]:
    for softmax in few_of_each(log_softmaxes(graph)):
        nodes = _negative_mean(graph, softmax.output)
        if nodes is not None and is_written_out(graph, (*softmax.nodes, *nodes)):
            whole = (*softmax.nodes, *nodes)
            # torch's own cross entropy is these two, too, whatever is done to each row's loss.
            if not _OWN.issubset(node.name for node in whole):
                words = ["one_hot"] * any(node.name in _CHOSEN | {"eye"} for node in nodes)
                words += ["smooth"] * any(_is_smoothed(graph, node) for node in nodes)
                words += ["by_hand"] * (len(softmax.nodes) > _SOFTMAX_NODES)
                yield Match("Cross entropy", "F.cross_entropy", whole, nodes[-1], words=tuple(words))


def _apart(graph: Graph) -> Iterator[Match]:
    """Cross entropies as ``logsumexp(scores) - scores[class]``: no logarithm of a softmax is made. Where the
    classes are smoothed, a part of the scores' mean is taken off, too."""
    for found in log_sum_exps(graph):
        less = _less_picked(graph, found.output, found.input)
        tail = added_up(graph, less[-1]) if less else None
        if less and tail is not None:
            nodes = (*_centring(graph, found.input), *found.nodes, *less, *tail)
            if is_written_out(graph, nodes):
                hot = any(node.name in _CHOSEN for node in less)
                words = ["one_hot" if hot else "apart", *["by_hand"] * (len(found.nodes) > 1)]
                words += ["smooth"] * (not hot and any(node.name in SUMS for node in less))
                yield Match("Cross entropy", "F.cross_entropy", nodes, nodes[-1], words=tuple(words))


def _less_picked(graph: Graph, value: int, scores: int) -> list[Node]:
    """The operators that take the scores of the classes, and perhaps means of all scores, off ``value``;
    empty where none are picked, or what is taken off is not one score in all."""
    nodes: list[Node] = []
    weight, picked = 0.0, False
    while True:
        for difference, _ in graph.uses(value):
            own, share = _of_scores(graph, difference, scores) if difference.name == "sub" else ([], 0.0)
            if own and (own[0].name in SUMS or not picked):
                break
        else:
            return nodes if picked and abs(weight - 1) < TOLERANCE else []
        picked |= own[0].name not in SUMS
        weight += share
        nodes += [*own, difference]
        value = difference.outputs[0]


def _of_scores(graph: Graph, difference: Node, scores: int) -> tuple[list[Node], float]:
    """The operators that pick the scores of the classes, or add up all of each row, for ``difference``, with
    what they scale a score, or the mean of a row, by; empty where none do."""
    for value in difference.inputs:
        scaled: list[Node] = []
        share = 1.0
        node = graph.producer.get(graph.origin(value))
        while node is not None and node.name in _SCALES and len(node.inputs) == 1:
            number = next((one for one in node.arguments if isinstance(one, (int, float))), 0.0)
            share *= number if node.name == "mul" else 1 / number if number else 0.0
            scaled.insert(0, node)
            node = graph.producer.get(graph.origin(node.inputs[0]))
        node = _unsqueezed(graph, node)
        if node is None or not node.inputs:
            continue
        own, total = _weighed(graph, node, scores)
        if own:
            return [*own, *scaled], share * total
        if graph.origin(node.inputs[0]) != graph.origin(scores):
            continue
        if node.name in _PICKS or _is_own_pair(graph, node):
            return [node, *scaled], share
        if node.name in SUMS and (rows := graph.size(node.outputs[0])) > 1:
            return [node, *scaled], share * (graph.size(scores) / rows if node.name == "sum" else 1.0)
    return [], 0.0


def _is_own_pair(graph: Graph, node: Node) -> bool:
    """Whether it reads the entry of each row and column of a matrix whose number they share."""
    whole = len(node.arguments) == 1 and not node.named
    return node.name in _DIAGONALS and whole and len(graph.shape(node.inputs[0])) == 2


def _weighed(graph: Graph, node: Node, scores: int) -> tuple[list[Node], float]:
    """The operators that add up each row of the scores times a class vector, the sum last, with what that
    vector adds up to; empty where ``node`` is no such sum."""
    product = graph.producer.get(graph.origin(node.inputs[0])) if node.name == "sum" else None
    if product is None or product.name != "mul" or len(product.inputs) != 2:
        return [], 0.0
    sides = [graph.origin(one) for one in product.inputs]
    rows, size = graph.size(node.outputs[0]), graph.size(product.outputs[0])
    if graph.origin(scores) not in sides or rows < 2:
        return [], 0.0
    vector = product.inputs[1 - sides.index(graph.origin(scores))]
    made = _class_vector(graph, [vector])
    # What a class gets that is there, and what one gets that is not.
    given = next((one.outputs[0] for one in made if one.name in _CHOSEN), vector)
    found = Evaluation(graph, {given: (1.0, 0.0)}).of(vector) if made else None
    if found is None:
        return [], 0.0
    return [*made[::-1], product, node], found[0] + found[1] * (size // rows - 1)


def _centring(graph: Graph, scores: int) -> list[Node]:
    """The operators that take each row's largest score off all; empty where ``scores`` is not made so."""
    node = graph.producer.get(graph.origin(scores))
    largest_one = centred(graph, node) if node is not None else None
    return [largest_one, node] if node is not None and largest_one is not None else []


def _of_shares(graph: Graph) -> Iterator[Match]:
    """Cross entropies as the logarithm of the one probability that was picked of a softmax. Where all
    probabilities are computed with as well, as for a policy's entropy, the softmax has to stay."""
    for softmax in few_of_each(softmaxes(graph)):
        users = [user for user, _ in graph.uses(softmax.output)]
        if any(user.name in _COMPUTES for user in users):
            continue
        for pick in users:
            logarithm = _logarithm_of(graph, pick) if pick.name in _SELECTIONS else None
            tail = added_up(graph, logarithm[-1]) if logarithm else None
            if logarithm is None or tail is None:
                continue
            nodes = (*softmax.nodes, pick, *logarithm, *tail)
            if is_written_out(graph, nodes):
                yield Match("Cross entropy", "F.cross_entropy", nodes, nodes[-1])
                break


def _of_totals(graph: Graph) -> Iterator[Match]:
    """Logarithms of one exponential divided by the sum of all that a mask leaves: a cross entropy where each
    row's sum is of the very tensor that its exponential was picked from."""
    for total in candidates(graph, frozenset({"sum"})):
        weights = exponentials(graph, total.inputs[0])
        made = {value for node in weights for value in node.outputs}
        for padded, user in _divided_by(graph, total, weights[0]) if made else ():
            above = user.inputs[0]
            picks = _selections(graph, above, made) or _of_exponentials(graph, above, weights[0])
            if not picks:
                continue
            logarithm = _logarithm_of(graph, user)
            tail = added_up(graph, logarithm[-1]) if logarithm else None
            nodes = (*weights, total, *padded, *picks, user, *(logarithm or ()), *(tail or ()))
            if tail and is_written_out(graph, nodes):
                same = _of_its_row(graph, total, picks)
                whole = _LEFT_OUT_OF_IT if len(weights) > 1 else ""
                kind, reason = ("Cross entropy", whole) if same else (_SHARE, _ONLY_IF)
                yield Match(kind, "F.cross_entropy", nodes, nodes[-1], reason, words=("by_hand",))
                break


def _of_masked_sums(graph: Graph) -> Iterator[Match]:
    """Cross entropies as the scores less the logarithm of a sum of the exponentials that a mask leaves. A
    class is picked of the scores, or of the difference."""
    for total in candidates(graph, frozenset({"sum"})):
        weights = exponentials(graph, total.inputs[0])
        logarithm = _logarithm_of(graph, total) if len(weights) > 1 else None
        for difference, _ in graph.uses(logarithm[-1].outputs[0]) if logarithm else ():
            scores = graph.origin(weights[0].inputs[0])
            if difference.name != "sub":
                continue
            picks: list[Node] = []
            if graph.origin(difference.inputs[0]) == scores:
                tail: Sequence[Node] | None = _negative_mean(graph, difference.outputs[0])
            else:
                picks, share = _of_scores(graph, difference, scores)
                tail = added_up(graph, difference) if share == 1 and picks[0].name in _PICKS else None
            nodes = (*weights, total, *(logarithm or ()), difference, *picks[:1])
            if tail and is_written_out(graph, (*nodes, *tail)):
                whole = tuple(dict.fromkeys((*nodes, *tail)))
                yield Match(_SHARE, "F.cross_entropy", whole, whole[-1], _ONLY_IF, words=("by_hand",))
                break


def _of_its_row(graph: Graph, total: Node, picks: list[Node]) -> bool:
    """Whether each row's entry is picked of the tensor that ``total`` adds up by rows. Then what a mask takes
    out, or a weight scales, is as if it were in the scores."""
    summed = graph.origin(total.inputs[0])
    rank = len(graph.shape(total.inputs[0]))
    dims = dims_of(total, rank)
    (pick, *others) = picks
    if [one.name for one in others] == ["exp"]:  # of a score that was picked
        made = graph.producer.get(summed)
        summed = graph.origin(made.inputs[0]) if made is not None and made.name == "exp" else -1
    elif others:
        return False
    if len(dims) != 1 or graph.origin(pick.inputs[0]) != summed:
        return False
    if _is_own_pair(graph, pick):
        return True
    if pick.name in ("gather", "select"):
        dim = pick.argument(1, "dim")
        return isinstance(dim, int) and dim % rank in dims
    if pick.name != "index" or rank != 2:
        return False
    rows = pick.inputs[1:]
    made = graph.producer.get(graph.origin(rows[1 - min(dims)])) if len(rows) == 2 else None
    return made is not None and made.name == "arange"


def _selections(graph: Graph, value: int, made: set[int]) -> list[Node]:
    """The operators that pick ``value`` of ``made``, perhaps in pieces that are joined; empty if none do."""
    node = graph.producer.get(graph.origin(value))
    if node is None:
        return []
    if node.name == "cat":
        pieces = [_selections(graph, one, made) for one in node.inputs]
        return [*(pick for piece in pieces for pick in piece), node] if all(pieces) else []
    return [node] if node.name in _SELECTIONS and graph.origin(node.inputs[0]) in made else []


def _of_exponentials(graph: Graph, value: int, beside: Node) -> list[Node]:
    """The operators that make ``value`` of exponentials, those that pick their scores among them: as they
    are, added up or joined. Empty where it is made of something else, or of nothing that the exponentials
    ``beside`` are made of."""
    node = graph.producer.get(graph.origin(value))
    if node is None or node.name not in ("exp", "sum", "cat"):
        return []
    if node.name == "cat":
        pieces = [_of_exponentials(graph, one, beside) for one in node.inputs]
        return [*(part for piece in pieces for part in piece), node] if all(pieces) else []
    weights = [node] if node.name == "exp" else exponentials(graph, node.inputs[0])
    scores = weights[0].inputs[0] if weights else -1
    if _near(graph, scores).isdisjoint(_near(graph, beside.inputs[0])):
        return []
    pick = graph.producer.get(graph.origin(scores))
    picks = [pick] if pick is not None and pick.name in _SELECTIONS else []
    return [*picks, *weights] if node in weights else [*picks, *weights, node]


def _near(graph: Graph, value: int) -> set[int]:
    """``value``, and the values from which a few operators compute it."""
    found = [value]
    for one in found:
        node = graph.producer.get(one)
        if node is not None and len(found) < FAR:
            found += [before for before in node.inputs if before not in found]
    return {*found}


def _divided_by(graph: Graph, total: Node, beside: Node) -> Iterator[tuple[list[Node], Node]]:
    """The operators that divide by ``total``, also where other exponentials are added to it before."""
    yield from divided_by(graph, total)
    for user, read in graph.uses(total.outputs[0]):
        if user.name == "add" and len(user.inputs) == 2:
            own = _of_exponentials(graph, next((one for one in user.inputs if one != read), read), beside)
            for padded, division in divided_by(graph, user) if own else ():
                yield [*own, user, *padded], division


def _logarithm_of(graph: Graph, pick: Node) -> list[Node] | None:
    """The operators from a picked probability to its logarithm, perhaps kept away from zero; else None."""
    nodes: list[Node] = []
    value = pick.outputs[0]
    for _ in range(3):
        users = [node for node, _ in graph.uses(value)]
        if len(users) != 1:
            return None
        # What else is added may make a mixture of two probabilities.
        if users[0].name != "log" and not (users[0].name in PADDINGS and only_guards(users[0])):
            return None
        nodes.append(users[0])
        if users[0].name == "log":
            return nodes
        value = users[0].outputs[0]
    return None


def _unsqueezed(graph: Graph, node: Node | None) -> Node | None:
    """The operator before ``[..., 0]`` of one entry, which is a squeeze; ``node`` itself for another one."""
    if node is None or node.name != "select" or graph.size(node.inputs[0]) != graph.size(node.outputs[0]):
        return node
    return graph.producer.get(graph.origin(node.inputs[0]))


def _negative_mean(graph: Graph, value: int) -> list[Node] | None:
    """All operators from the log-probabilities to their mean or sum; None where no class is picked."""
    found: dict[Node, None] = {}
    waiting, picked, ended = [value], False, False
    for _ in range(4 * FAR):
        if not waiting:
            break
        for node, read in graph.uses(waiting.pop(0)):
            if node in found or node.name not in SUMS | _SELECTIONS | ON_ERRORS:
                continue
            found[node] = None
            made = _class_vectors(graph, node, read) if node.name in _LEAVES_OUT else []
            found.update(dict.fromkeys(made))
            picked |= node.name in _SELECTIONS or bool(made)
            if graph.size(node.outputs[0]) == 1:
                ended = True
            else:
                waiting.append(node.outputs[0])
    ordered = sorted(found, key=lambda node: node.index)
    return ordered if picked and ended else None


def _class_vectors(graph: Graph, node: Node, read: int) -> list[Node]:
    """The operators that made the class numbers by which ``node`` weighs what it reads, or chooses of it.
    Empty where it takes more of the other classes, or one number for each row, as a mask has."""
    size = graph.size(node.outputs[0])
    made = _class_vector(graph, [one for one in node.inputs if graph.size(one) == size])
    chosen = next((one for one in made if one.name in _CHOSEN), None)
    if chosen is None:
        return made
    hot = (0.0, 1.0) if chosen.name == "ne" else (1.0, 0.0)
    taken = Evaluation(graph, {read: (1.0, 1.0), chosen.outputs[0]: hot}).of(node.outputs[0])
    return made if taken is None or abs(taken[0]) > abs(taken[1]) else []


def _is_smoothed(graph: Graph, node: Node) -> bool:
    """Whether it multiplies by numbers made of the labels that are not 0 for the other classes."""
    for factor in node.inputs if node.name == "mul" else ():
        made = _class_vector(graph, [factor])
        chosen = next((one for one in made if one.name in _CHOSEN and one.name != "ne"), None)
        if chosen is None:
            continue
        known = Evaluation(graph, {chosen.outputs[0]: (1.0, 0.0)})
        # What a scatter writes to may hold the numbers of the other classes already.
        for numbers in (known.of(factor), known.of(chosen.inputs[0])):
            if numbers is not None and numbers[1] != 0:
                return True
    return False


def _class_vector(graph: Graph, factors: Sequence[int]) -> list[Node]:
    """The operators that made one of the factors of class numbers: a one-hot vector, smoothed or not."""
    paths: list[tuple[int, list[Node]]] = [(value, []) for value in factors]
    for _ in range(FAR):
        if not paths:
            break
        value, nodes = paths.pop(0)
        before = graph.producer.get(graph.origin(value, MOVED))
        if before is not None and before.name in _CHOSEN and len(before.inputs) >= _OF_CLASSES[before.name]:
            filled = graph.producer.get(graph.origin(before.inputs[0])) if before.inputs else None
            return [*nodes, before, *([filled] if filled is not None and filled.name in CONSTANTS else [])]
        if before is not None and before.name == "eye":
            return [*nodes, before]
        if before is not None and before.name in _LOOK_UPS:
            made = [graph.producer.get(graph.origin(one, MOVED)) for one in before.inputs]
            identity = [one for one in made if one is not None and one.name == "eye"]
            if identity:
                return [*nodes, before, *identity]
        if before is not None and before.name in POINTWISE:
            paths += [(one, [*nodes, before]) for one in before.inputs]
    return []


def sum_of_classes(graph: Graph, scattered: Node) -> float:
    """What each row adds up to that has one number at its class and another at all other ones; NaN where
    those are not known."""
    given, dim = scattered.argument(3, "value"), scattered.argument(1, "dim")
    rest = Evaluation(graph, {scattered.outputs[0]: (0.0,)}).of(scattered.inputs[0])
    if rest is None or not isinstance(given, (int, float)) or not isinstance(dim, int):
        return math.nan
    return given + rest[0] * (graph.shape(scattered.outputs[0])[dim] - 1)
