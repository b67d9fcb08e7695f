"""Attention: two matrix products with a softmax between them, whatever else is done to the scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from warpline.rulekit.graph.graph import MOVED, Graph, Node, Ref
from warpline.rulekit.graph.match import Match, is_written_out, largest
from warpline.rulekit.graph.softmax import (
    Softmax,
    centred,
    few_of_each,
    quotients,
    single_softmaxes,
    softmaxes,
)
from warpline.wire.dataflow import LIBRARY, MODULE

#: In inference mode composite operators are recorded as they were called: `einsum` is no `bmm` then.
PRODUCTS = frozenset({"bmm", "baddbmm", "mm", "matmul", "einsum"})
#: What is done to scores: scaled, capped, masked, shifted by a bias.
_ON_SCORES = frozenset({
    "mul", "div", "true_divide", "add", "sub", "masked_fill", "where", "clamp", "clamp_min", "tanh", "tril",
    "maximum", "minimum", "copy", "index_put",
})  # fmt: skip
_MASKS = frozenset({"masked_fill", "where", "tril", "index_put", "add", "sub"})
#: What takes out exponentials.
_LEAVES_OUT = frozenset({"mul", "masked_fill", "where"})
#: And to weights: dropout, also made of a mask, or a mask again.
_ON_WEIGHTS = frozenset({"dropout", "native_dropout", "mul", "div", "masked_fill", "nan_to_num", "where"})
#: Operators on each side of the softmax that are looked through.
_FAR = 24


def attentions(graph: Graph) -> list[Match]:
    """The attention that a step computes op by op: at most ``PER_SITE`` matches for each line's softmax."""
    return largest(match for match, _ in _all(graph) if is_written_out(graph, (match.nodes[0], match.result)))


def unread_weights(graph: Graph) -> list[Match]:
    """Attention that a call of a module computes op by op for weights that nothing reads, as
    `nn.MultiheadAttention` does unless it is told not to."""
    found = []
    for match, weights in _all(graph):
        sites = {node.site for node in match.nodes}
        site = graph.site(match.result)
        others = [node for node, _ in graph.uses(weights, MOVED) if node is not match.result]
        read = any(graph.consumers.get(value) for node in others for value in node.outputs)
        if len(sites) == 1 and site is not None and site.via == MODULE and not read:
            found.append(replace(match, call="need_weights=False"))
    return largest(found)


def attentions_of_libraries(graph: Graph) -> list[Match]:
    """The attention that a library computes op by op below a line of the user's, once for each shape of its
    scores there."""
    found: dict[tuple[int, tuple[int, ...]], Match] = {}
    for match, _ in _all(graph, single_softmaxes(graph)):
        sites = [graph.site(node) for node in match.nodes]
        if all(site is not None and site.via == LIBRARY for site in sites):
            found.setdefault((match.result.site, scores_of(graph, match)), match)
    return list(found.values())


def scores_of(graph: Graph, match: Match) -> tuple[int, ...]:
    """The shape of an attention's scores, as its first product makes them."""
    return graph.shape(match.nodes[0].outputs[0])


def _all(graph: Graph, found: Iterable[Softmax] | None = None) -> Iterator[tuple[Match, int]]:
    """Every attention, whoever wrote it, with the weights as they are summed. ``found``: its softmaxes."""
    for softmax in few_of_each(softmaxes(graph)) if found is None else found:
        before = _scores(graph, softmax.input)
        after = _weighted(graph, softmax.output, softmax.size) if before is not None else None
        if before is not None and after is not None:
            nodes = (*before, *softmax.nodes, *after)
            call = "F.scaled_dot_product_attention"
            weights = after[-2].outputs[0] if len(after) > 1 else softmax.output
            yield Match("Attention", call, nodes, after[-1], words=_words(graph, before, after)), weights
    if found is None:
        yield from _divided(graph)


def _divided(graph: Graph) -> Iterator[tuple[Match, int]]:
    """Attention by exponentials that are divided by their sum, before they are multiplied with the values or
    after, perhaps with some of them left out."""
    for softmax, division in quotients(graph):
        before = _scores(graph, softmax.input)
        late = graph.origin(division.inputs[0], MOVED) != softmax.output
        value = softmax.output if late else division.outputs[0]
        after = _weighted(graph, value, softmax.size) if before is not None else None
        if before is None or after is None:
            continue
        nodes = tuple(sorted({*before, *softmax.nodes, *after}, key=lambda node: node.index))
        if not late or after[-1] is graph.producer.get(graph.origin(division.inputs[0], MOVED)):
            left_out = any(node.name in _LEAVES_OUT for node in softmax.nodes)
            plain = [node for node in before if not centred(graph, node)]
            words = _words(graph, plain, after, left_out)
            yield Match("Attention", "F.scaled_dot_product_attention", nodes, nodes[-1], words=words), value


def _words(graph: Graph, before: list[Node], after: list[Node], left_out: bool = False) -> tuple[str, ...]:
    """What the fused call is tried with: a mask or bias as a tensor, dropout of the weights. ``left_out``: a
    mask takes out exponentials."""
    masked = left_out or any(node.name in _MASKS for node in before)
    dropped = any("dropout" in node.name or _is_drawn(graph, node) for node in after)
    return (*(("mask",) if masked else ()), *(("dropout",) if dropped else ()))


def _is_drawn(graph: Graph, node: Node) -> bool:
    """Whether it multiplies with a mask of random numbers, as dropout does on a CPU."""
    sides = [graph.producer.get(graph.origin(one, frozenset({"div"}))) for one in node.inputs]
    return node.name == "mul" and any(one is not None and one.name == "bernoulli" for one in sides)


def _scores(graph: Graph, value: int) -> list[Node] | None:
    """The operators from a product of two activations to ``value``; None where there is no such product."""
    paths: list[tuple[int, list[Node]]] = [(value, [])]
    for _ in range(_FAR):
        if not paths:
            return None
        at, nodes = paths.pop(0)
        node = graph.producer.get(graph.origin(at, MOVED))
        if node is None:
            continue
        if node.name in PRODUCTS:
            if _of_activations(graph, node):
                return [node, *nodes]
        elif node.name in _ON_SCORES:
            size = graph.size(at)
            paths += [(one, [node, *nodes]) for one in node.inputs if graph.size(one) == size]
    return None


def _of_activations(graph: Graph, node: Node) -> bool:
    """Neither side is a parameter: else it is a linear layer."""
    sides = node.inputs[-2:]
    return not any(graph.origin(side, MOVED) in graph.parameters for side in sides)


def _weighted(graph: Graph, value: int, size: int) -> list[Node] | None:
    """The operators from the softmax's result to the product that sums over its ``size`` entries."""
    paths: list[tuple[int, list[Node]]] = [(value, [])]
    for _ in range(_FAR):
        if not paths:
            return None
        at, nodes = paths.pop(0)
        for node, read in graph.uses(at, MOVED):
            if node.name in PRODUCTS:
                if _of_activations(graph, node) and _sums_over(graph, node, size):
                    return [*nodes, node]
            elif node.name in _ON_WEIGHTS and graph.size(node.outputs[0]) == graph.size(read):
                paths.append((node.outputs[0], [*nodes, node]))
    return None


def _sums_over(graph: Graph, node: Node, size: int) -> bool:
    """Whether the product sums over ``size`` entries, or may: the letters of an `einsum` are not recorded."""
    if node.name == "einsum":
        return len(node.inputs) == 2 and all(size in graph.shape(one) for one in node.inputs)
    sides = [one for one in node.arguments if isinstance(one, Ref)][-2:]
    return bool(sides) and graph.shape(sides[0].value)[-1] == size
