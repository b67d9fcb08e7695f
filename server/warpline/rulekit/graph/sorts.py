"""Sorts whose results are read at one end only."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from warpline.rulekit.graph.axes import axes_of, regrouped
from warpline.rulekit.graph.evaluate import dims_of
from warpline.rulekit.graph.graph import MOVED, PIECE, PIECES, SAME, Graph, Node, Ref
from warpline.wire.dataflow import DIRECT
from warpline.wire.probing import SORTS

#: What puts a tensor into an order: the positions of its dimension and of the order.
_ORDERED = {"gather": (1, 2), "index_select": (1, 2), "take_along_dim": (2, 1)}
_OTHER = {"start": "end", "end": "start", "all": "all"}
#: Share of the entries up to which a sort is reported: chosen, not fitted.
MOST_READ = 0.25


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """``read`` of ``size`` entries along ``dim``; ``largest``: those, and not the smallest."""

    node: Node
    dim: int
    size: int
    read: int
    largest: bool


def partly_read(graph: Graph) -> Iterator[PartlyRead]:
    """Sorts by the user's own lines whose results are only sliced, at one end."""
    for node in graph.nodes:
        site = graph.site(node)
        if node.name not in SORTS or site is None or site.via != DIRECT or not node.outputs:
            continue
        shape = graph.shape(node.outputs[0])
        plain = [one for one in node.arguments[1:] if isinstance(one, int)]
        numbers = [one for one in plain if not isinstance(one, bool)]
        dim = node.named.get("dim", numbers[0] if numbers else 0 if node.name == "msort" else -1)
        flags = [one for one in plain if isinstance(one, bool)]
        descending = bool(node.named.get("descending", flags[-1] if flags else False))
        if not isinstance(dim, int) or not graph.size(node.outputs[0]) or not shape:
            continue
        dim %= len(shape)
        size = shape[dim]
        ends = [end for value in node.outputs for end in _read_of(graph, value, dim, set())]
        read = max((count for _, count in ends), default=0)
        if 0 < read <= MOST_READ * size and len({at for at, _ in ends}) == 1:
            yield PartlyRead(node, dim, size, read, descending is (ends[0][0] == "start"))


def _read_of(graph: Graph, value: int, dim: int, seen: set[int]) -> Iterator[tuple[str, int]]:
    """The end at which each operator reads ``value`` or a view of it, and how many entries from there; all
    where it is no slice along ``dim``. ``seen``: values that were followed: a view back to the layout of
    before is the same value."""
    if value in seen:
        return
    seen.add(value)
    for reader in graph.consumers.get(value, ()):
        size = graph.shape(value)[dim]
        if (ordered := _ordered(graph, reader, value, dim)) is not None:
            yield from _read_of(graph, reader.outputs[0], ordered, seen)
        elif reader.name == "flip" and dim in dims_of(reader, len(graph.shape(value))):
            for end, count in _read_of(graph, reader.outputs[0], dim, seen):
                yield _OTHER[end], count
        elif reader.inputs != (value,) or not reader.outputs:
            yield "all", size
        elif reader.name in PIECES:
            yield from _pieces(graph, reader, dim, size)
        elif reader.name in PIECE:
            yield _end(graph, reader, dim, size)
        elif (kept := _kept(graph, reader, value, dim)) is not None:
            yield from _read_of(graph, reader.outputs[0], kept, seen)
        else:
            yield "all", size


def _ordered(graph: Graph, reader: Node, value: int, dim: int) -> int | None:
    """The dimension of its result that ``reader`` puts into the order ``value``; None for another use."""
    if reader.name == "index" and isinstance(places := reader.arguments[1], tuple):
        alone = [at for at, one in enumerate(places) if one is not None] if places.count(Ref(value)) else []
        return alone[0] if len(alone) == 1 and len(graph.shape(value)) == 1 else None
    at, order = _ORDERED.get(reader.name, (1, 2))
    if reader.name not in _ORDERED or reader.argument(order, "index") != Ref(value):
        return None
    along = reader.argument(at, "dim")
    along = along % len(graph.shape(reader.outputs[0])) if isinstance(along, int) else None
    return along if reader.name == "index_select" or along == dim else None


def _kept(graph: Graph, reader: Node, value: int, dim: int) -> int | None:
    """Where ``dim`` is in what a view or copy makes of ``value``; None where it is no dimension of it."""
    if reader.name in MOVED:
        order = graph.order(reader)
        return order.index(dim) if order is not None else None
    shape, after = graph.shape(value), graph.shape(reader.outputs[0])
    if reader.name not in SAME or math.prod(after) != math.prod(shape):
        return None
    axes = regrouped(axes_of(shape), after, lambda one: shape[one])
    return axes.index((dim,)) if axes is not None and (dim,) in axes else None


def _pieces(graph: Graph, reader: Node, dim: int, size: int) -> Iterator[tuple[str, int]]:
    """The ends of what is read of the pieces that an operator takes a tensor apart into."""
    if graph.along(reader) != dim:
        yield "all", size
        return
    start = 0
    for piece in reader.outputs:
        width = 1 if reader.name == "unbind" else graph.shape(piece)[dim]
        if graph.consumers.get(piece):
            yield _nearest_end(start, start + width, size)
        start += width


def _end(graph: Graph, reader: Node, dim: int, size: int) -> tuple[str, int]:
    """The end at which ``select``, ``narrow`` or ``slice`` reads; all where along another dimension."""
    first = reader.argument(2, "index" if reader.name == "select" else "start", 0)
    last = reader.argument(3, "end")
    if graph.along(reader) != dim:
        return "all", size
    first = 0 if first is None else first
    if not isinstance(first, int) or not isinstance(last, int | None):
        return "all", size
    first += size if first < 0 else 0
    if reader.name == "select":
        return _nearest_end(first, first + 1, size)
    if reader.name == "narrow":
        length = reader.argument(3, "length")
        return _nearest_end(first, first + length, size) if isinstance(length, int) else ("all", size)
    last = size if last is None else last
    return _nearest_end(first, min(size, last + size if last < 0 else last), size)


def _nearest_end(first: int, last: int, size: int) -> tuple[str, int]:
    return ("start", last) if last <= size - first else ("end", size - first)
