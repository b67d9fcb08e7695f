"""Copies that change a tensor's layout or type, and which of them are unnecessary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.axes import Order, axes_of, regrouped
from warpline.rulekit.graph.evaluate import REDUCTIONS, dims_of
from warpline.rulekit.graph.graph import MOVED, PIECES, Graph, Node, Ref
from warpline.rulekit.graph.pointwise import POINTWISE
from warpline.rulekit.graph.storages import VIEWS
from warpline.wire.dataflow import DIRECT

_LAYOUT = frozenset({"clone", "contiguous"})
_CASTS = frozenset({"_to_copy", "to"})
_ATTENTION = "scaled_dot_product"  # with an underscore before it, but in inference mode
#: In inference mode composite operators are recorded as they were called.
_CONVOLUTIONS = frozenset({"convolution", "conv2d", "conv3d"})
#: Dimensions from which on convolutions take channels last.
_IMAGES = 4
#: These give a tensor of their first argument's layout, and take any.
_SAME_LAYOUT = POINTWISE | {
    "dropout", "native_dropout", "_softmax", "_log_softmax", "native_layer_norm", "layer_norm", "_to_copy",
    "linear", "_fused_rms_norm", "rms_norm", "detach", "alias", "silu", "gelu", "relu",
}  # fmt: skip
_LINEAR = frozenset({"mm", "addmm"})
_PRODUCTS = _LINEAR | {"bmm", "baddbmm", "matmul"}
#: These copy what they are given, whatever its layout.
_JOINING = frozenset({"cat", "stack"})
_RESHAPING = frozenset({"view", "_unsafe_view", "reshape"})
#: These give parts of a tensor that have all of its dimensions, in its layout.
_CUTS = PIECES - {"unbind"} | {"slice", "narrow"}
#: Types that hold every number of another one, so that a cast there and back changes nothing.
_WIDER = {
    "bfloat16": {"float32", "float64"},
    "float16": {"float32", "float64"},
    "float32": {"float64"},
    "bool": {"uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "uint8": {"int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "int8": {"int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "int16": {"int32", "int64", "float32", "float64"},
    "int32": {"int64", "float64"},
}
_CONTIGUOUS = "contiguous_format"
#: A chain of more operators between two copies is none.
_FURTHEST = 40

#: These give the same for dimensions that a view has made one as for each of them, and no places.
_REDUCING = frozenset({"mean", "sum", "var", "std", "var_mean", "amax", "amin", "logsumexp"})

#: Why nothing needs a copy.
ANY_LAYOUT, THERE_AND_BACK, AGAIN, CAST_BACK = "any layout", "there and back", "again", "cast back"
FREED = "freed"  # it undoes one that any layout would do for: without that one it has nothing to copy
REDUCED = "reduced"  # of what a view makes one, where any layout would do otherwise


@dataclass(frozen=True, slots=True)
class Copies:
    nodes: tuple[Node, ...]
    why: str


def needless(graph: Graph) -> Iterator[Copies]:
    """Groups of copies that the user's lines ask for and that nothing needs.

    Of a tensor in another layout: all that reads the copy takes any layout, or is a view of dimensions that
    are reduced at once; or the copy undoes an earlier one and what lies between works in either. Of the same
    tensor, to the same layout and type, as an earlier one.
    To a wider type and back with nothing computed in between.
    """
    mixed = {node.site for node in graph.nodes if node.name not in VIEWS | _LAYOUT | _CASTS}
    own = [node for node in graph.nodes if _is_own(graph, node, mixed)]
    for node in own:
        if node.name in _LAYOUT and (_order(graph, node) is not None or _is_computed(graph, node)):
            if any_layout := _read_in_any_layout(graph, node):
                yield Copies((node,), any_layout)
            elif (first := _undone(graph, node, own)) is not None:
                freed = _read_in_any_layout(graph, first) == ANY_LAYOUT
                yield Copies((node,), FREED) if freed else Copies((first, node), THERE_AND_BACK)
        elif node.name in _CASTS and (back := _cast_back(graph, node)) is not None:
            # Autocast's own cast, for a product, goes when the user's goes.
            yield Copies((node, back) if back in own else (node,), CAST_BACK)
    yield from _again(graph, own)


def _is_own(graph: Graph, node: Node, mixed: set[int]) -> bool:
    """Whether the line itself asks for the copy: no operator of the same call computes anything, as those do
    for which autocast casts."""
    site = graph.site(node)
    if site is None or site.via != DIRECT or node.site in mixed or not node.arguments:
        return False
    first = node.arguments[0]
    if not isinstance(first, Ref) or not node.outputs or graph.size(first.value) <= 1:
        return False
    if node.name in _CASTS:
        return graph.dtype(first.value) != graph.dtype(node.outputs[0])
    # `x.clone()` has no such argument: its copy is the user's to change.
    return node.name == "contiguous" or (node.name in _LAYOUT and "memory_format" in node.named)


def _order(graph: Graph, node: Node) -> Order | None:
    """How the tensor that ``node`` copies was permuted before; None if it was not."""
    first = node.arguments[0]
    before = graph.producer.get(first.value) if isinstance(first, Ref) else None
    order = graph.order(before) if before is not None else None
    return order if order is not None and order != tuple(sorted(order)) else None


def _is_computed(graph: Graph, node: Node) -> bool:
    """Whether ``node`` copies what an operator computed, to the contiguous layout.

    That tensor has no gaps, and ``.contiguous()`` copies only what is not contiguous. So its dimensions are
    in another order: channels last, or that of the operator's inputs.
    """
    before = graph.producer.get(node.inputs[0])
    return (
        before is not None
        and before.name not in VIEWS
        and node.named.get("memory_format") == _CONTIGUOUS
        and node.outputs[0] not in node.inputs
    )


def _read_in_any_layout(graph: Graph, node: Node) -> str:
    """Why no reader needs the layout, ANY_LAYOUT or REDUCED; "" where one does."""
    readers = list(_cast_readers(graph, node.outputs[0]))
    order = _order(graph, node)
    last = order is not None and order[-1] == len(order) - 1
    # A product takes a matrix transposed.
    transposed = order is not None and order[:-2] == tuple(range(len(order) - 2))
    rest = [
        reader
        for reader in readers
        if not (
            reader.name in POINTWISE | REDUCTIONS | _JOINING
            or (reader.name in _PRODUCTS and transposed)
            or (reader.name in _CONVOLUTIONS and len(graph.shape(node.outputs[0])) >= _IMAGES)
            or (_ATTENTION in reader.name and last)
        )
    ]
    if not readers or not all(_is_reduced(graph, reader) for reader in rest):
        return ""
    return REDUCED if rest else ANY_LAYOUT


def _is_reduced(graph: Graph, view: Node) -> bool:
    """Whether ``view`` makes several dimensions one only for reductions over all of these: they take the
    dimensions themselves, in any layout."""
    if view.name not in _RESHAPING or not view.inputs or not view.outputs:
        return False
    before, after = graph.shape(view.inputs[0]), graph.shape(view.outputs[0])
    axes = regrouped(axes_of(before), after, lambda dim: before[dim])
    readers = list(_cast_readers(graph, view.outputs[0]))
    if axes is None or not readers:
        return False
    joined = {dim for dim, group in enumerate(axes) if len(group) > 1}
    return bool(joined) and all(
        reader.name in _REDUCING and joined <= dims_of(reader, len(after)) for reader in readers
    )


def _cast_readers(graph: Graph, value: int) -> Iterator[Node]:
    """What reads a value, a cast of it (autocast's too) or a part that nothing writes into: these keep the
    layout."""
    for reader in graph.consumers.get(value, ()):
        if value in reader.outputs and reader.name in VIEWS | _CASTS:
            continue  # a view, or a cast to the type that it has, which is the tensor itself
        if reader.name in _CASTS and reader.outputs and "memory_format" not in reader.named:
            yield from _cast_readers(graph, reader.outputs[0])
        elif reader.name in _CUTS and not _is_written(graph, reader):
            for part in reader.outputs:
                yield from _cast_readers(graph, part)
        else:
            yield reader


def _undone(graph: Graph, node: Node, own: list[Node]) -> Node | None:
    """The earlier copy that ``node`` undoes: between them only what keeps dimensions in their places."""
    found = _order(graph, node)
    if found is None:
        return None
    order: Order = found
    value = graph.producer[node.inputs[0]].inputs[0]
    for _ in range(_FURTHEST):
        before = graph.producer.get(value)
        if before is None:
            return None
        if before in own and before.name in _LAYOUT and (first := _order(graph, before)) is not None:
            return before if _after(first, order) == tuple(range(len(order))) else None
        moved = graph.order(before)
        if moved is not None:
            order = _after(moved, order)
        step = _through(graph, before, value)
        if step is None:
            return None
        value = step
    return None


def _after(first: Order, second: Order) -> Order:
    return tuple(first[dim] for dim in second) if len(first) == len(second) else ()


def _through(graph: Graph, node: Node, value: int) -> int | None:
    """The value that has the dimensions of ``value``, which ``node`` made, in the same places."""
    if not node.arguments or not isinstance(node.arguments[0], Ref):
        return None
    first = node.arguments[0].value
    if node.name in MOVED | _CUTS:
        return first
    if node.name in _SAME_LAYOUT:
        same = [one for one in node.inputs if len(graph.shape(one)) == len(graph.shape(value))]
        return same[0] if same else None
    if node.name in _CONVOLUTIONS and len(graph.shape(value)) >= _IMAGES:
        return first
    if node.name not in _RESHAPING:
        return None
    # A linear layer: its rows are taken together, multiplied, and taken apart again.
    product = graph.producer.get(first)
    if product is None or product.name not in _LINEAR:
        return None
    rows = product.inputs[1 if product.name == "addmm" else 0]
    merged = graph.producer.get(rows)
    if merged is None or merged.name not in _RESHAPING or not merged.inputs:
        return None
    whole = merged.inputs[0]
    before, after = graph.shape(whole), graph.shape(value)
    last = (before[-1:], after[-1:]) == (graph.shape(rows)[-1:], graph.shape(first)[-1:])
    return whole if last and before[:-1] == after[:-1] else None


def _cast_back(graph: Graph, node: Node) -> Node | None:
    """The cast back to the type that ``node`` cast from, if only such casts read what it gives. One through a
    narrower type rounds (``x.int().float()``), which may be what it is for."""
    first = node.inputs[0]
    if graph.dtype(node.outputs[0]) not in _WIDER.get(graph.dtype(first), ()):
        return None
    readers = [reader for reader, _ in graph.readers(node.outputs[0], VIEWS)]
    back = [
        reader
        for reader in readers
        if reader.name in _CASTS and graph.dtype(reader.outputs[0]) == graph.dtype(first)
    ]
    return back[0] if back and len(back) == len(readers) else None


def _again(graph: Graph, own: list[Node]) -> Iterator[Copies]:
    """Copies of one tensor to one type and layout; the first of them is needed."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in own:
        before = graph.producer.get(node.inputs[0])
        order = _order(graph, node)
        if node.name in _LAYOUT and (order is None or before is None):
            continue
        # Each call of `permute` gives a value of the same number: the layout is the same.
        groups.setdefault((node.inputs[0], node.name, graph.dtype(node.outputs[0])), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1 and not any(_is_written(graph, node) for node in nodes) and _stays(graph, nodes):
            yield Copies(tuple(nodes[1:]), AGAIN)


def _stays(graph: Graph, nodes: list[Node]) -> bool:
    """Whether nothing writes into the tensor between its copies: an optimizer's step gives no result, and
    leaves the value its number."""
    value = nodes[0].inputs[0]
    return not any(
        not reader.outputs and nodes[0].index < reader.index < nodes[-1].index
        for reader in graph.consumers.get(value, ())
    )


def _is_written(graph: Graph, node: Node) -> bool:
    """Whether something writes into the copy, or a view: then each needs its own."""
    readers = (reader for value in node.outputs for reader, _ in graph.readers(value, VIEWS))
    return any(graph.is_in_place(reader) for reader in readers)
