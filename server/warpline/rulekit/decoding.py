"""Attention over a sequence that gets longer from call to call, and the call in the loop that does it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from warpline.model.profile import Op
from warpline.rulekit.calling import Function, callers, function_of, is_forward
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph, Node, graph_of
from warpline.rulekit.growing import LEAST_LENGTHS, grows
from warpline.wire.dataflow import Padding

#: Attention as one operator, and the position of ``is_causal`` among its arguments.
_CAUSAL = {
    "scaled_dot_product_attention": 5,
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_flash_attention_for_cpu": 4,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_cudnn_attention": 6,
}
#: Layers as one operator, for inference; their input has rows, positions and features.
_LAYERS = ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")
_SOFTMAX = ("_softmax", "softmax", "_masked_softmax", "_safe_softmax", "_softmax_backward_data")
#: What puts a mask on scores.
_MASKS = frozenset({"masked_fill", "where", "add", "tril", "triu", "baddbmm", "mul", *_LAYERS, *_CAUSAL})
_DEPTH = 4  # functions inside functions


@dataclass(frozen=True, slots=True)
class Growing:
    lengths: tuple[int, ...]  # of the sequence
    places: tuple[tuple[str, int, str], ...]  # file, line and function of the attention

    @property
    def piece(self) -> int:
        """How many positions the sequence grows from one call to the next."""
        return gcd(*(after - before for before, after in pairwise(self.lengths)))

    @property
    def mean(self) -> float:
        """The average length of the sequence over the calls."""
        return sum(self.lengths) / len(self.lengths)


def growing(context: Context) -> Growing | None:
    """The captured steps' attention, where its query and key grow together, and nothing goes backward."""
    lengths: dict[str, set[int]] = {"forward": set(), "backward": set()}
    places: dict[tuple[str, int, str], None] = {}
    for cost in context.profile.lines:
        for op in cost.ops:
            length = _length(op)
            if length is not None and op.phase in lengths:
                lengths[op.phase].add(length)
                places[cost.file, cost.line, cost.function] = None
    graph = graph_of(context.profile.facts.dataflow)
    in_order = _one_after_the_other(graph)
    found = in_order or tuple(sorted(lengths["forward"]))
    if len(found) < LEAST_LENGTHS or len(lengths["backward"]) >= LEAST_LENGTHS:
        return None
    grown = Growing(found, tuple(places))
    # Not all operators of a line are kept: some lengths of the captured steps may be missing.
    most = grown.piece * max(len(found) - 1, len(context.profile.manifest.captured) - 1)
    span = found[-1] - found[0]
    if context.profile.facts.prefill_steps:  # where `generate` is called again, lengths lie between
        span -= max(after - before for before, after in pairwise(found)) - grown.piece
    if span > most or (grown.piece != 1 and not joins_more(context)):
        return None
    return grown if _is_causal(graph) else None


def _one_after_the_other(graph: Graph) -> tuple[int, ...]:
    """The lengths of the recorded step's attention, where each is longer than the one before by the same
    piece, until it begins again; empty where that is not so, or a step is one length."""
    lengths = [length for node in graph.nodes if (length := _length_at(graph, node)) is not None]
    apart = {after - before for before, after in pairwise(lengths)} - {0}
    if len(set(lengths)) < LEAST_LENGTHS or sum(one > 0 for one in apart) != 1:
        return ()
    return tuple(sorted(set(lengths)))


def _length_at(graph: Graph, node: Node) -> int | None:
    return _length_of(node.name, [graph.shape(value) for value in node.inputs])


def _length(op: Op) -> int | None:
    return _length_of(op.name.removeprefix("aten::"), op.shapes)


def _length_of(name: str, inputs: Iterable[tuple[int, ...]]) -> int | None:
    """Positions of self-attention; None for another operator, and where the key is longer than the query."""
    shapes = [shape for shape in inputs if shape]
    if name.startswith(("scaled_dot_product_attention", "_scaled_dot_product")):
        same = (
            len(shapes) >= 2 and min(len(shapes[0]), len(shapes[1])) >= 3 and shapes[0][-2] == shapes[1][-2]
        )
        return shapes[0][-2] if same else None
    if name in _SOFTMAX and shapes and len(shapes[0]) >= 3 and shapes[0][-1] == shapes[0][-2]:
        return shapes[0][-1]
    return shapes[0][1] if name in _LAYERS and shapes and len(shapes[0]) == 3 else None


def looked_up_growing(context: Context, place: tuple[str, int], found: Padding) -> bool:
    """Whether the rows that an embedding looks up at ``place`` get longer by one (or by a piece that is
    joined to a tensor) from call to call, and nothing goes backward: what their ends repeat was generated. A
    size that is none of these is another look-up's there."""
    cost = context.cost(*place)
    if cost is None or cost.backward_ms > 0:
        return False
    shapes = [op.shapes[1] for op in cost.ops if op.name == "aten::embedding" and len(op.shapes) > 1]
    lengths = sorted({shape[1] for shape in shapes if len(shape) == 2 and shape[0] == found.rows})
    apart = [after - before for before, after in pairwise(lengths)]
    piece = min(apart, default=0)
    if apart.count(piece) < LEAST_LENGTHS - 1 or (piece != 1 and not joins_more(context)):
        return False
    return found.columns not in lengths or not {found.columns - piece, found.columns + piece}.isdisjoint(
        lengths
    )


def joins_more(context: Context) -> bool:
    """Whether a line joins pieces of one size to a tensor that grows."""
    return any(grows([op for op in cost.ops if op.name == "aten::cat"]) for cost in context.profile.lines)


def _is_causal(graph: Graph) -> bool:
    """Whether a mask may be on the recorded step's attention; True where no attention was recorded, or some
    may be in compiled code."""
    attention = [node for node in graph.nodes if node.name in (*_CAUSAL, *_LAYERS, *_SOFTMAX)]
    for node in graph.nodes:
        at = _CAUSAL.get(node.name)
        if at is not None and node.argument(at, "is_causal") is True:
            return True
        if node.name in _MASKS and any(_is_mask(graph, node, value) for value in node.inputs):
            return True
    return not attention or graph.flow.around


def _is_mask(graph: Graph, node: Node, value: int) -> bool:
    """Whether an input may say which positions see which: the same for all rows, or for all heads of a row
    (1, or rows, x 1 x n x n) beside an input with several heads."""
    shape = graph.shape(value)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] <= 1:
        return False
    if graph.size(value) == shape[-1] ** 2:
        return True
    of_heads = (other for one in node.inputs if len(other := graph.shape(one)) == len(shape) == 4)
    return any(shape[1] == 1 < other[1] and other[-2:] == shape[-2:] for other in of_heads)


def loop_call(context: Context, places: tuple[tuple[str, int, str], ...]) -> tuple[str, int] | None:
    """The line of a loop that calls the model with its attention at ``places``. Where a function without a
    loop does, the line of a loop that calls it, if that is the only one. None where several lines call it."""
    found = _model_call(context, places)
    if found in {(file, line) for file, line, _ in places}:  # a library with its own loop
        return found
    place = found
    for _ in range(_DEPTH):
        cost = context.cost(*place) if place is not None else None
        if cost is None:
            return found
        if _in_loop(context, cost.place):
            return place
        calling = callers(context, function_of(cost))
        place = calling[0].place if len(calling) == 1 else None
    return found


def _in_loop(context: Context, place: tuple[str, int]) -> bool:
    source = context.source(place[0])
    statement = source.statement_at(place[1])
    return statement is not None and bool(source.loops(statement))


def _model_call(context: Context, places: tuple[tuple[str, int, str], ...]) -> tuple[str, int] | None:
    for file, line, function in places:
        place, name = (file, line), (file, function)
        seen: set[Function] = set()
        while name not in seen:
            if not is_forward(name):
                return place
            seen.add(name)
            calling = callers(context, name)
            if len(calling) == 1:
                place, name = calling[0].place, function_of(calling[0])
    return None
