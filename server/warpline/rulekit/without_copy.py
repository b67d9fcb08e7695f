"""The edit that leaves out a ``.contiguous()`` that nothing needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, Node
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.own_launches import launches_itself
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import called_name
from warpline.wire.dataflow import LIBRARY

_COPIES = {"clone", "contiguous"}
#: Calls of the user's that raise an error, or do something else, for other strides.
_OF_STRIDES = (
    "view",
    "view_as",
    "as_strided",
    "stride",
    "is_contiguous",
    "data_ptr",
    "resize_",
    "set_",
    "view_as_complex",
)
_STRIDED = {"view", "_unsafe_view", "as_strided", "view_as"}
_RESHAPED = _STRIDED | {"reshape", "_reshape_alias", "flatten", "unflatten"}


def without_copies(context: Context, graph: Graph, copies: Collection[Node]) -> Fix:
    """The lines of ``copies`` without them. Raises Refused unless the recorded step shows that nothing writes
    into the memory which they would share, and that no ``view`` gets a tensor of their layout."""
    places = sorted({place for node in copies if (place := graph.place(node)) is not None})
    edits: dict[str, Edits] = {}
    for file, line in places:
        source = context.source(file)
        calls = [call for call in source.calls(line) if called_name(call) == "contiguous" and not call.args]
        ran = [node for node in graph.nodes if graph.place(node) == (file, line) and node.name in _COPIES]
        if len(calls) != 1 or any(node not in copies for node in ran):
            raise Refused("another copy of its line may be needed: leave out `.contiguous()` where it is not")
        called = calls[0].func
        if not isinstance(called, cst.Attribute):
            raise Refused("the call is not a method's")
        start, end = source.span(calls[0])[0], source.span(called.attr)[0]
        code = source.slice(start, end).rstrip().removesuffix(".").rstrip()
        edits.setdefault(file, Edits(source)).replace(calls[0], code)
    _nothing_writes(graph, copies)
    _no_view_follows(context, graph, copies)
    first, *rest = edits.values()
    return first.fix("Leave out the copy", "unsafe", *rest)


def _nothing_writes(graph: Graph, copies: Collection[Node]) -> None:
    root = storages(graph, copies)
    shared: dict[int, int] = {}
    for node in copies:
        family = root(node.outputs[0])
        shared[family] = min(node.index, shared.get(family, node.index))
    for node in graph.nodes:
        written = node.inputs[:1] if graph.is_in_place(node) else () if node.outputs else node.inputs
        if any(node.index > shared.get(root(value), node.index) for value in written):
            raise Refused("something writes into it, or into what it is a copy of")


def _no_view_follows(context: Context, graph: Graph, copies: Collection[Node]) -> None:
    after = set(_after(graph, copies))
    ran = {place for node in graph.nodes if (place := graph.place(node)) is not None}
    if launches_itself(context):
        raise Refused("kernels of the script's own may need its layout")
    for node in after:
        site = graph.site(node)
        if graph.is_in_place(node) and _is_merged(graph, node.inputs[0]):
            raise Refused("something writes through a view that would be a copy in another layout")
        name = graph.flow.names[graph.flow.name[node.index]]
        if not name.startswith("aten.") or (
            node.name in _STRIDED and site is not None and site.via == LIBRARY
        ):
            raise Refused("code of a library may need its layout")
    follow = {place for node in after if (place := graph.place(node)) is not None}
    for source in context.sources():
        for call in source.nodes(cst.Call):
            if called_name(call) not in _OF_STRIDES:
                continue
            lines = source.extent(source.statement(call) or call)
            here = {(source.path, line) for line in lines}
            before = not here & ran and context.reached.node(source, call) is True
            if here & follow or not (before or here & ran):
                raise Refused(
                    f"`{source.code(call.func)}` (line {lines[0]}) may need its layout: use `reshape`"
                )


def _is_merged(graph: Graph, value: int) -> bool:
    """Whether a value is a view in other dimensions, as ``flatten`` gives one if the layout allows it."""
    while (node := graph.producer.get(value)) is not None and node.inputs and node.name in VIEWS:
        if node.name in _RESHAPED:
            return True
        value = node.inputs[0]
    return False


def _after(graph: Graph, copies: Collection[Node]) -> Iterator[Node]:
    """All operators that work on what the copies give, or on what comes of that."""
    waiting, seen = [value for node in copies for value in node.outputs], set[int]()
    while waiting:
        for node in graph.consumers.get(waiting.pop(), ()):
            if node.index not in seen:
                seen.add(node.index)
                waiting += node.outputs
                yield node
