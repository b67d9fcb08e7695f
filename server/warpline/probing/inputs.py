"""The tensors that a replacement works on, read off the operators recorded at its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from math import prod

from warpline.model import costs as figures
from warpline.model.operators import FUSED_ATTENTION
from warpline.model.profile import LineCost, Op
from warpline.wire.precision import DOUBLE, HALF, REAL
from warpline.wire.probing import CAST, MIXED, SORTS, WIDE, Question, Tensor

#: Inputs that differ are asked about one by one, those that take longest first.
MOST = 4
#: Pieces of a tensor that grows.
MOST_PIECES = 1000
#: Of an activation's operators those that work on the whole input: its largest, and what is nearly as large.
WHOLE = 0.5

#: Times of a recurrent layer that is tried.
MOST_TIMES = 100
_MATRIX = 2  # dimensions
#: Of an embedding's table, or of what is sorted: a trial has several such tensors.
MOST_NUMBERS = 1 << 26
#: Answers have to cover this share of the time that they are about; the rest counts like them.
COVERED = figures.bound("probed-share")

#: Operators with all of a convolution's time among what they call.
_WHOLE_CONVOLUTION = ("aten::convolution", "aten::convolution_backward")

#: What a replacement is asked about, each with a number in proportion to its time.
Weighted = list[tuple[Question, float]]
#: ``(kind, its options, the lines' costs)``
Reader = Callable[[str, tuple[str, ...], list[LineCost]], Weighted]


def tensor(op: Op, at: int, dtypes: Collection[str] = REAL) -> Tensor | None:
    """Input ``at`` of a call; None where it is not a tensor of ``dtypes`` with a size."""
    if at >= len(op.shapes) or at >= len(op.dtypes) or not op.shapes[at] or op.dtypes[at] not in dtypes:
        return None
    strides = op.strides[at] if at < len(op.strides) else ()
    return Tensor(op.shapes[at], op.dtypes[at], strides if len(strides) == len(op.shapes[at]) else ())


def forward(costs: Iterable[LineCost]) -> list[Op]:
    """The operators of the forward pass at some lines."""
    return [op for cost in costs for op in cost.ops if op.phase == "forward"]


def differentiated(costs: Iterable[LineCost]) -> bool:
    """Whether a backward pass ran for any of these lines."""
    return any(op.phase == "backward" for cost in costs for op in cost.ops)


def reduced(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Norms: the inputs of their means and variances, and what was cast to them from half precision."""
    found: dict[tuple[Tensor, ...], float] = {}
    names = set()
    casts = {
        given.shape: given
        for op in forward(costs)
        if op.name == "aten::_to_copy" and CAST in options and (given := tensor(op, 0, HALF)) is not None
    }
    for op in forward(costs):
        name = op.name.removeprefix("aten::")
        given = (
            tensor(op, 0)
            if name in ("mean", "var", "var_mean", "std", "norm", "linalg_vector_norm")
            else None
        )
        if given is not None:
            names.add(name)
            given = casts.get(given.shape, given)
            found[given,] = max(found.get((given,), 0.0), op.count)
    if by == "layer_norm" and names & {"var", "std", "var_mean"}:
        options = (*options, "var")
    weighted = _asked(by, options, costs, found)
    return [(replace(one, options=_of_types(one, casts)), weight) for one, weight in weighted]


def _of_types(question: Question, casts: Mapping[tuple[int, ...], Tensor]) -> tuple[str, ...]:
    """The options without the words about half precision that are not true of its tensor."""
    given = question.tensors[0]
    untrue = set() if given in casts.values() else {CAST} if given.dtype in HALF else {CAST, WIDE, MIXED}
    return tuple(word for word in question.options if word not in untrue)


def whole(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Activations and losses: the largest inputs of their operators."""
    found: dict[Tensor, float] = {}
    for op in forward(costs):
        given = tensor(op, 0)
        if given is not None:
            plain = Tensor(given.shape, given.dtype)
            found[plain] = max(found.get(plain, 0.0), op.count)
    largest = max((prod(one.shape) for one in found), default=0)
    kept: dict[tuple[Tensor, ...], float] = {
        (one,): count for one, count in found.items() if prod(one.shape) >= WHOLE * largest
    }
    return _asked(by, options, costs, kept)


def products(costs: Iterable[LineCost]) -> list[tuple[tuple[Tensor, Tensor], Op]]:
    """Matrix products with the two tensors that they multiply."""
    found = []
    for cost in costs:
        for op in cost.ops:
            first = {"aten::addmm": 1, "aten::baddbmm": 1, "aten::mm": 0, "aten::bmm": 0}.get(op.name)
            pair = (tensor(op, first), tensor(op, first + 1)) if first is not None else (None, None)
            if pair[0] is not None and pair[1] is not None:
                found.append(((pair[0], pair[1]), op))
    return found


def attended(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Attention: query and key of the first product, value of the second, by the shape of the softmax, or of
    the exponentials that one is made of.

    Einsum, and calls without a dimension for the heads, lay a product's batch and rows out in other ways than
    the softmax does, so products are known by their sizes. What several queries share (a key for all heads)
    is asked about as if each had its own.
    """
    called = forward(costs)
    # A product with a weight, as of a layer on the same line, has no batch on one side.
    calls = [op for op in called if op.name == "aten::matmul" and all(len(one) > 2 for one in op.shapes[:2])]
    calls = calls or [op for op in called if op.name in ("aten::bmm", "aten::baddbmm")]
    if any(op.name == "aten::einsum" for op in forward(costs)):
        options = (*options, "einsum")
    sized = [op for op in forward(costs) if op.shapes and len(op.shapes[0]) > 2]
    weighed = [op for op in sized if "softmax" in op.name] or [op for op in sized if op.name == "aten::exp"]
    found: dict[tuple[Tensor, ...], float] = {}
    at = [(op, int(op.name == "aten::baddbmm")) for op in calls]  # what it adds to comes first
    pairs = [(tensor(op, first), tensor(op, first + 1), op) for op, first in at]
    # Values may stand before their weights: then no product begins with what has the softmax's size.
    sizes_of = {prod(one.shapes[0]) for one in weighed}
    plain = any(one is not None and prod(one.shape) in sizes_of for one, _, _ in pairs)
    shapes = [one.shapes[0] for one in weighed]
    # Else the second product of one attention may have the size of another's scores by chance.
    exact = any(one and other and (*one.shape[:-1], other.shape[-1]) in shapes for one, other, _ in pairs)
    for left, turned, op in pairs:
        if left is None or turned is None or len(left.shape) < 3 or len(turned.shape) < 3:
            continue
        own = (*left.shape[:-1], turned.shape[-1])
        for scores in [own] if own in shapes or not shapes else [] if exact else shapes:
            heads, rows, columns = scores[:-2], scores[-2], scores[-1]
            if prod(scores) != prod(own) or columns not in (turned.shape[-1], rows):
                continue
            before = [(right, _turned(one), op) for one, right, op in pairs] if not plain else []
            for weights, value, other in (*pairs, *before):
                if other is op or weights is None or value is None or len(value.shape) < 3:
                    continue
                if prod(weights.shape) != prod(scores) or value.shape[-2] != columns:
                    continue
                deep, wide = left.shape[-1], value.shape[-1]
                key: tuple[Tensor, ...] = left, turned, value  # as they are, strides and all
                if scores != own or len(turned.shape) != len(scores):
                    sizes = (rows, deep), (deep, columns), (columns, wide)
                    key = tuple(Tensor((*heads, *size), left.dtype) for size in sizes)
                found[key] = max(found.get(key, 0.0), op.count)
    return _asked(by, options, costs, found)


def _turned(given: Tensor | None) -> Tensor | None:
    """A matrix of values that stands before its weights, as it would behind them: transposed."""
    if given is None or len(given.shape) < _MATRIX:
        return None
    return Tensor((*given.shape[:-2], given.shape[-1], given.shape[-2]), given.dtype)


def fused_attention(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Calls of ``scaled_dot_product_attention``: query, key and value as its kernel gets them.

    Under autocast a call is recorded twice, before and after the cast; only the second counts.
    """
    calls = [op for op in forward(costs) if op.name == "aten::scaled_dot_product_attention"] or [
        op for op in forward(costs) if op.name in FUSED_ATTENTION
    ]
    cast = [op for op in calls if op.dtypes and op.dtypes[0] in ("c10::Half", "c10::BFloat16")]
    found: dict[tuple[Tensor, ...], float] = {}
    masked = False
    for op in cast or calls:
        query, key, value = (tensor(op, at) for at in range(3))
        if query is not None and key is not None and value is not None:
            found[query, key, value] = found.get((query, key, value), 0.0) + op.count
            masked = masked or bool(op.shapes[3:4] and op.shapes[3])
    mask = ("mask",) if masked and "causal" not in options else ()
    return _asked(by, (*options, *mask), costs, found)


def grown(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """What grows by ``cat([whole, piece])``: the piece, and how many of them are joined in the end.

    A trace has the sizes of both tensors in one row: those of the whole, then those of the piece.
    """
    joins = []
    for op in forward(costs):
        row = op.shapes[0] if op.name == "aten::cat" and op.shapes else ()
        whole, piece = row[: len(row) // 2], row[len(row) // 2 :]
        along = [at for at in range(len(piece)) if len(whole) == len(piece) and whole[at] != piece[at]]
        if piece and len(whole) == len(piece) and len(along) <= 1 and all(piece):
            joins.append((op.count, whole, piece, along))
    dim = next((along[0] for _, _, _, along in joins if along), None)
    # A whole of one size is joined once in each loop: so often does a step run it.
    loops = max([1.0, *(count for count, *_ in joins)])
    rounds = round(sum(count for count, *_ in joins) / loops)
    if dim is None or rounds < 2:
        return []
    piece = next(piece for _, _, piece, along in joins if along)
    shortest = min(whole[dim] for _, whole, _, _ in joins if len(whole) == len(piece))
    count = rounds + max(1, shortest // piece[dim])
    words = (str(min(count, MOST_PIECES)), str(dim))
    return [(Question(by, (Tensor(piece),), words, differentiated(costs)), 1.0)]


def convolved(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Convolutions by image and weight; their options are stride, padding, dilation and groups as text."""
    found: dict[Question, float] = {}
    backward = differentiated(costs)
    for pair, words, op in convolutions(costs):
        question = Question(by, pair, (*words, *options), backward)
        found[question] = found.get(question, 0.0) + op.device_ms
    return _longest(found)


def convolutions(costs: Iterable[LineCost]) -> list[tuple[tuple[Tensor, Tensor], tuple[str, ...], Op]]:
    """``(image and weight, words, operator)`` of what computes convolutions, in both phases.

    ``aten::convolution`` has the arguments, and calls the operator that has the time. Transposed ones, and
    those of runs without arguments, are left out.
    """
    costs = list(costs)
    words: dict[tuple[tuple[int, ...], ...], tuple[str, ...]] = {}
    for op in forward(costs):
        if op.name == "aten::convolution" and len(op.values) >= 9 and op.values[6] in ("False", "false"):
            lists = ("x".join(_numbers(op.values[at])) for at in (3, 4, 5))
            words[op.shapes[:2]] = (*lists, *_numbers(op.values[8]))
    found = []
    for cost in costs:
        for op in cost.ops:
            first = 1 if op.name == "aten::convolution_backward" else 0
            image, weight = tensor(op, first), tensor(op, first + 1)
            known = words.get(op.shapes[first : first + 2])
            if "convolution" not in op.name or op.device_ms <= 0 or known is None:
                continue
            if image is not None and weight is not None:
                found.append(((image, weight), known, op))
    return found


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


def recurrent(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """A cell's input and the weights of its state. Options: the layer, and the number of times."""
    words = (options[0], str(min(int(options[1]), MOST_TIMES)))
    backward = differentiated(costs)
    for op in forward(costs):
        given = [one for at in range(len(op.shapes)) if (one := tensor(op, at)) is not None]
        pairs = [one for one in given if len(one.shape) == _MATRIX]
        if op.name.endswith("_cell") and len(pairs) > 2 and given[0] is pairs[0]:
            return [(Question(by, (given[0], pairs[-1]), words, backward), 1.0)]
    return []


def looked_up(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Options: the optimizer, the look-ups of a step and the rows of each, the table's two sizes."""
    *words, rows, columns = options
    table = Tensor((int(rows), int(columns)))
    return [(Question(by, (table,), tuple(words), True), 1.0)] if prod(table.shape) <= MOST_NUMBERS else []


def cut(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """A batch of windows. Options: those of the kind, and the sizes of the batch."""
    *words, shape = options
    batch = Tensor(tuple(int(size) for size in shape.split(",")))
    return [(Question(by, (batch,), tuple(words)), 1.0)] if prod(batch.shape) <= MOST_NUMBERS else []


def ordered(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """What is sorted, by the sorts' own time; nothing where that of one sort is not known."""
    found: dict[tuple[Tensor, ...], float] = {}
    for op in forward(costs):
        if op.name.removeprefix("aten::") not in SORTS or op.device_ms <= 0:
            continue
        given = tensor(op, 0)
        given = _fewer(given, int(options[0])) if given is not None else None
        if given is None:
            return []
        found[given,] = found.get((given,), 0.0) + op.device_ms
    longest = sorted(found.items(), key=lambda item: -item[1])[:MOST]
    return [(Question(by, given, options), ms) for given, ms in longest]


def _fewer(given: Tensor, dim: int) -> Tensor | None:
    """At most ``MOST_NUMBERS`` of it: its first rows, which are sorted each by itself. None where one
    dimension alone has more."""
    count, *rest = given.shape or (1,)
    rows = min(count, MOST_NUMBERS // max(1, prod(rest)))
    if rows == count:
        return given
    return None if rows < 1 or dim % len(given.shape) == 0 else replace(given, shape=(rows, *rest))


def odd(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """Products in which the size to be padded occurs."""
    size = int(options[0])
    found: dict[Question, float] = {}
    for pair, op in products(costs):
        if any(size in one.shape[-2:] for one in pair):
            question = Question(by, pair, options)
            found[question] = found.get(question, 0.0) + op.device_ms
    return _longest(found)


def doubles(by: str, options: tuple[str, ...], costs: list[LineCost]) -> Weighted:
    """What is computed in float64: products, on a CPU convolutions, and all else by its first such input.

    On a CPU a convolution's operator hands its work to others, of other shapes; its whole time counts.
    """
    found: dict[Question, float] = {}
    on_host = not any(cost.kernels for cost in costs)
    convolved = convolutions(costs) if on_host else []
    for pair, words, op in convolved:
        if pair[0].dtype in DOUBLE and op.name in _WHOLE_CONVOLUTION:
            question = Question("convolution", pair, (*words, "fp32"), differentiated(costs))
            found[question] = found.get(question, 0.0) + op.cpu_ms
    multiplied = {id(op): pair for pair, op in products(costs)}
    for op in (op for cost in costs for op in cost.ops if op.device_ms > 0):
        if convolved and "conv" in op.name:
            continue
        inputs = (tensor(op, at, DOUBLE) for at in range(2))
        given = next((one for one in inputs if one is not None), None)
        tensors = multiplied.get(id(op)) or ((Tensor(given.shape, given.dtype),) if given is not None else ())
        if tensors and tensors[0].dtype in DOUBLE:
            question = Question(by, tensors, options)
            found[question] = found.get(question, 0.0) + op.device_ms
    return _longest(found)


def _longest(found: dict[Question, float]) -> Weighted:
    return sorted(found.items(), key=lambda item: -item[1])[: 2 * MOST]


def _asked(
    by: str, options: tuple[str, ...], costs: list[LineCost], times: dict[tuple[Tensor, ...], float]
) -> Weighted:
    backward = differentiated(costs)
    most = sorted(times.items(), key=lambda item: -item[1] * prod(item[0][0].shape))[:MOST]
    return [
        (Question(by, tensors, options, backward), count * prod(tensors[0].shape)) for tensors, count in most
    ]
