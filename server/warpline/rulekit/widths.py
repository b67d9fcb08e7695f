"""A number that layers get alone and times whole numbers: an MLP with a gate has twice its width first.

Such layers stay alike only if the number itself is rounded up, where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.extents import tied
from warpline.rulekit.graph.graph import Graph, Node
from warpline.syntax.source import Source, only_target
from warpline.wire.births import Holder
from warpline.wire.sites import Module, facts_of

#: What takes a tensor apart into pieces, as it is recorded.
_PARTS = frozenset({"split", "split_with_sizes", "chunk", "tensor_split"})
_MADE = (cst.Name, cst.Integer, cst.Call, cst.BinaryOperation)


@dataclass(frozen=True, slots=True)
class Width:
    """``made`` computes the number; layers get each of ``sizes``. ``stray``: the line of a read that is no
    layer's size, else 0."""

    source: Source
    made: cst.BaseExpression
    number: int
    sizes: frozenset[int]
    starts: frozenset[tuple[int, int]]  # where the expressions begin that layers get
    stray: int

    def holds(self, holder: Holder | None) -> bool:
        """Whether ``holder`` is the number or one of its multiples."""
        own = holder is not None and holder.file == self.source.path
        return holder is not None and own and (holder.line, holder.column) in self.starts

    def is_even(self, context: Context, graph: Graph, node: Node) -> bool:
        """Whether an operator cuts one of the sizes into equal ones, by how many they are (``chunk``)."""
        place, shapes = graph.place(node), {graph.shape(value) for value in node.outputs}
        if node.name not in _PARTS or place is None or len(shapes) != 1:
            return False
        (piece,), whole = shapes, graph.shape(node.inputs[0])
        cut = [both for both in zip(whole, piece, strict=True) if both[0] != both[1]]
        calls = context.source(place[0]).calls(place[1], "chunk", "split", "tensor_split", "hsplit", "vsplit")
        names = {context.source(place[0]).name(call.func).rpartition(".")[2] for call in calls}
        return len(cut) == 1 and self.sizes.issuperset(cut[0]) and names == {"chunk"}


def width(context: Context, holder: Holder, size: int) -> Width | None:
    """The number that ``size`` is, or is a multiple of, where layers get multiples of it; None where a
    function does not give a name of its own that number once."""
    source = context.source(holder.file)
    start = (holder.line, holder.column)
    for node in source.at(holder.line, *_MADE) if source.text and holder.column >= 0 else ():
        if source.span(node)[0] != start:
            continue
        target, times = only_target(source.parent(node)), 1
        if isinstance(node, cst.BinaryOperation):
            inner = (one for one in (node.left, node.right) if isinstance(one, cst.Name))
            name = next((one for one in inner if _multiple(source, one)[0] is node), None)
            target, times = (name, _multiple(source, name)[1]) if name is not None else (target, 1)
        if isinstance(target, cst.Name) and size % times == 0:
            return _of_name(context, source, target, size // times)
    return None


def _of_name(context: Context, source: Source, name: cst.Name, number: int) -> Width | None:
    function = source.enclosing(name, cst.FunctionDef)
    uses = source.uses(name.value, function) if function is not None else []
    bound = [one for one in uses if source.binds(one)]
    made = source.given(bound[0]) if len(bound) == 1 else None
    if made is None or not isinstance(made, (cst.Integer, cst.Call, cst.BinaryOperation)):
        return None
    if only_target(source.parent(made)) is not bound[0]:
        return None
    reads = {one: _multiple(source, one) for one in uses if one is not bound[0]}
    sizes = {number * times for _, times in reads.values()}
    if not sizes - {number}:
        return None
    strays = [one for one, (whole, _) in reads.items() if not _layers(context, source, whole)]
    return Width(
        source,
        made,
        number,
        frozenset({number, *sizes}),
        frozenset(source.span(one)[0] for one in (made, *(whole for whole, _ in reads.values()))),
        source.line(strays[0]) if strays else 0,
    )


def _multiple(source: Source, read: cst.Name) -> tuple[cst.BaseExpression, int]:
    """``width * 2`` around ``width``, and the factor; ``width`` alone, and 1."""
    above = source.parent(read)
    if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply):
        times = source.literal(above.right if above.left is read else above.left)
        if type(times) is int and times > 0:
            return above, times
    return read, 1


def _layers(context: Context, source: Source, size: cst.BaseExpression) -> bool:
    """Whether a layer is made with that size."""
    call = source.taking(size)
    lines = source.extent(call) if call is not None else ()
    return any(site.file == source.path and site.line in lines for site in context.sites("module"))


def tied_alone(context: Context, size: int, holder: Holder | None) -> str:
    """Why the size must not be changed there alone; "" where all that has to agree with it changes too."""
    if reason := _other_layer(context, {size}, lambda one: one is not None and one == holder):
        return reason
    graph = whole_graph(context.profile.facts.dataflow)
    return tied(graph, size) if graph is not None else "the run does not show what else has this size"


def tied_width(context: Context, width: Width) -> str:
    """The same of a number that layers have multiples of."""
    if width.stray:
        return f"the number is read for something else, too (line {width.stray})"
    if reason := _other_layer(context, width.sizes, width.holds):
        return reason
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        return "the run does not show what else has this size"
    even = partial(width.is_even, context, graph)
    return next(filter(None, (tied(graph, size, even) for size in sorted(width.sizes))), "")


def _other_layer(context: Context, sizes: Collection[int], holds: Callable[[Holder | None], bool]) -> str:
    """Why a layer with one of ``sizes`` would be left behind; "" where ``holds`` its holder."""
    for site in context.sites("module"):
        own = [one for one in site.arguments if one.passed and any(one.value == size for size in sizes)]
        users = "." in (facts_of(Module, site).type or "")  # it passes the size on to layers
        if own and not users and not all(holds(one.holder) for one in own):
            line = f"{Path(site.file).name}:{site.line}"
            return f"the layer made at {line} has this size too, and may not take it from there"
    return ""
