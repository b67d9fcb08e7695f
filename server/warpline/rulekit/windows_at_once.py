"""The edit that cuts all windows of a batch at once (see :mod:`warpline.rulekit.windows`)."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import Graph, graph_around
from warpline.rulekit.origins import assigned_values
from warpline.rulekit.rounds import Rounds, is_read_outside
from warpline.rulekit.vectorised import called_from, list_above, put_joined, put_stacked
from warpline.rulekit.windows import Window, kinds
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method
from warpline.wire.probing import FROM

_BY_HAND = (
    "look all windows up at once by hand: `data.unfold(0, n, 1).index_select(0, starts)` for a tensor, "
    "`sliding_window_view(data, n)[starts]` for an array of NumPy's"
)
#: What joins pieces along another dimension than the first gives a contiguous tensor.
_LAID = ".contiguous()"
#: NumPy's types of numbers in files and arrays.
_TYPES = frozenset({
    "uint8", "uint16", "uint32", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
})  # fmt: skip
_DEPTH = 4  # names of names: chosen, so that a circle ends


@dataclass(frozen=True, slots=True)
class Cut:
    """What the edit needs of a window. ``arrays``: NumPy cuts it. ``device``: a device does. ``dims``: of
    what it is cut from; None where that is not known."""

    window: Window
    arrays: bool
    device: bool
    dims: int | None


def windows_at_once(context: Context, found: Rounds, cut: list[tuple[cst.BaseExpression, Window]]) -> Fix:
    """Look all windows up at once, with the same values in the same layout. ``cut``: what the loop collects.
    Raises Refused where it is not known what is cut, or where."""
    source, loop = found.source, found.loop
    assert not isinstance(loop, (cst.While, cst.Call))
    graph = graph_around(context.profile.facts.dataflow)
    if any(op.phase == "backward" for cost in found.costs for op in cost.ops):
        raise Refused(_BY_HAND)
    edits = Edits(source)
    taken = loop.iter if isinstance(loop, cst.For) else loop.for_in.iter
    texts = []
    for value, window in cut:
        one = _cut(context, found, graph, value, window)
        look_up = _look_up(edits, one, _starts(context, source, graph, loop, taken, one, edits))
        text = source.rewritten(value, {window.piece: look_up})
        # NumPy gives a look-up the layout of what it looks up.
        texts.append(f"{text}.contiguous()" if one.arrays and one.dims != 1 else text)
    if not isinstance(loop, cst.For):
        put_joined(source, edits, loop, texts[0], _LAID)
        return edits.fix("Cut all windows at once", "safe")
    number = source.code(loop.target)
    if (len(cut) > 1 and not isinstance(taken, (cst.Name, cst.Attribute))) or is_read_outside(
        source, number, loop
    ):
        raise Refused(_BY_HAND)
    given = []
    for (value, _), text in zip(cut, texts, strict=True):
        call = source.enclosing(value, cst.Call)
        assert call is not None and isinstance(call.func, cst.Attribute)
        pieces = source.code(call.func.value)
        given.append(f"{pieces} = {text}")
        edits.remove(list_above(source, loop, pieces))
        put_stacked(source, edits, loop, pieces, 3, _LAID)
    edits.replace_statement(loop, "\n".join(given))
    return edits.fix("Cut all windows at once", "safe")


def how_tried(
    context: Context, found: Rounds, cut: list[tuple[cst.BaseExpression, Window]]
) -> tuple[str, ...] | None:
    """The options of a trial of kind "windows", by the first window of a round; None where the record does
    not have its size."""
    source, loop, graph = found.source, found.loop, graph_around(context.profile.facts.dataflow)
    if graph is None or isinstance(loop, (cst.While, cst.Call)):
        return None
    value, window = cut[0]
    calls = source.nodes(cst.Call, within=value)
    pieces = called_from(source, graph, "slice", window.piece) or called_from(
        source, graph, "lift_fresh", *calls
    )
    try:
        one = _cut(context, found, graph, value, window)
    except Refused:
        return None
    if not pieces or one.dims is None:
        return None
    made = pieces[0].outputs[0]
    shape, dim = graph.shape(made), one.dims - 1 if window.last else window.dim
    if dim >= len(shape):
        return None
    taken = loop.iter if isinstance(loop, cst.For) else loop.for_in.iter
    words = ["tensor"] if called_from(source, graph, "unbind", loop, taken) else []
    words += ["cast"] if any(is_method(call, "astype") for call in calls) else []
    stored = _stored(context, source, window.piece.value) if one.arrays and "cast" in words else set()
    words += [FROM + stored.pop()] if len(stored) == 1 else []
    words += [] if one.device else ["host"]
    sizes = ",".join(map(str, (round(found.each), *shape)))
    return ("numpy" if one.arrays else "torch", str(dim), graph.dtype(made), *words, sizes)


def _stored(context: Context, source: Source, node: cst.BaseExpression, depth: int = _DEPTH) -> set[str]:
    """The types that the text names where an array is made or read."""
    if isinstance(node, (cst.Name, cst.Attribute)) and depth:
        made = assigned_values(context, source, node)
        return {name for where, one in made for name in _stored(context, where, one, depth - 1)}
    named = (source.name(one).rpartition(".") for one in source.nodes(cst.Attribute, within=node))
    return {name for module, _, name in named if module == "numpy" and name in _TYPES}


def _cut(
    context: Context, found: Rounds, graph: Graph | None, value: cst.BaseExpression, window: Window
) -> Cut:
    """Raises Refused where neither the record nor the text says what is cut."""
    source, piece = found.source, window.piece
    launches = context.on_gpu and any(cost.launches for cost in found.costs)
    parts = [one.slice for one in piece.slice]
    numbers = sum(isinstance(one, cst.Index) and not isinstance(one.value, cst.Ellipsis) for one in parts)
    shapes = set()
    for node in called_from(source, graph, "slice", piece) if graph is not None else ():
        assert graph is not None
        shape = graph.shape(node.outputs[0])
        if (int(node.argument(1, "dim", 0)) - window.dim) % len(shape) == 0:
            shapes.add(shape)
    if len(shapes) > 1:
        raise Refused("the windows are not all of one size")
    if shapes:
        return Cut(window, False, launches, len(shapes.pop()) - numbers)
    kind = kinds(context, source, piece.value)
    if kind not in ({"torch"}, {"numpy"}):
        raise Refused(
            f"the run does not say whether `{source.code(piece.value)}` is an array. If so, {_BY_HAND}"
        )
    calls = source.nodes(cst.Call, within=value)
    made = called_from(source, graph, "lift_fresh", *calls) if graph is not None else []
    dims = {len(graph.shape(node.outputs[0])) for node in made} if graph is not None else set()
    return Cut(
        window, kind == {"numpy"}, kind == {"torch"} and launches, dims.pop() if len(dims) == 1 else None
    )


def _starts(
    context: Context,
    source: Source,
    graph: Graph | None,
    loop: cst.CSTNode,
    taken: cst.BaseExpression,
    cut: Cut,
    edits: Edits,
) -> str:
    """Where the windows begin, as what cuts them takes it. Raises Refused where it is not known what the loop
    takes, or that is of more than one dimension."""
    if isinstance(taken, cst.Call) and isinstance(taken.func, cst.Attribute) and is_method(taken, "tolist"):
        known = kinds(context, source, taken.func.value) in ({"torch"}, {"numpy"})
        taken = taken.func.value if known else taken
    code, offset = source.operand(taken), cut.window.offset
    nodes = called_from(source, graph, "unbind", loop, taken) if graph is not None else []
    kind = {"torch"} if nodes else kinds(context, source, taken)
    if graph is not None and any(len(graph.shape(node.inputs[0])) != 1 for node in nodes):
        raise Refused("the loop takes rows, and not numbers")
    if kind not in ({"torch"}, {"numpy"}, {"list"}):
        raise Refused(f"the run does not say what `{code}` is. If it has numbers, {_BY_HAND}")
    if kind != ({"numpy"} if cut.arrays else {"torch"}) and (kind == {"list"} or not cut.arrays):
        wanted = (
            ("numpy.asarray", "import numpy as np") if cut.arrays else ("torch.as_tensor", "import torch")
        )
        code = f"{edits.add_import(*wanted)}({code})"
    if offset:
        code = f"{code} - {offset[1:]}" if offset.startswith("-") else f"{code} + {offset}"
    moved = kind == {"torch"} and _elsewhere(context, source, taken)
    if cut.arrays and kind == {"torch"}:
        code = f"({code})" if offset else code
        return f"{code}.cpu().numpy()" if moved else f"{code}.numpy()"
    if not cut.arrays and (moved or cut.device):
        # What the host's memory has needs no wait; what a device has does, on its way to the host.
        wait = "" if moved else ", non_blocking=True"
        data = source.code(cut.window.piece.value)
        code = f"({code})" if offset else code
        return f"{code}.to({data}.device{wait})"
    return code


def _elsewhere(context: Context, source: Source, taken: cst.BaseExpression) -> bool:
    """Whether numbers may be on a device: the text names one where they are made."""
    if any(True for _ in context.calls("set_default_device")):
        return True
    made = [(source, taken)]
    if isinstance(taken, (cst.Name, cst.Attribute)):
        made = assigned_values(context, source, taken)
    return any(
        where.is_named(call.func, "cuda", "to") or where.argument(call, "device") is not None
        for where, one in made
        for call in where.nodes(cst.Call, within=one)
    )


def _look_up(edits: Edits, cut: Cut, starts: str) -> str:
    """The text that cuts all windows; they come first, and the rest is as in one of them."""
    window, dim = cut.window, cut.window.dim
    if window.last and cut.dims is not None:
        dim = cut.dims - 1
    if window.last and dim < 0:
        raise Refused(_BY_HAND)
    base, axis = window.base, f"{dim}"
    simple = cut.dims == 1
    if cut.arrays:
        view = edits.add_import("numpy.lib.stride_tricks.sliding_window_view", "import numpy as np")
        text = (
            f"{view}({base}, {window.length})" if simple else f"{view}({base}, {window.length}, axis={axis})"
        )
        if not simple:
            move = edits.add_import("numpy.moveaxis", "import numpy as np")
            text = f"{move}({text}, ({dim}, -1), (0, {dim + 1}))"
        return f"{text}[{starts}]"
    text = f"{base}.unfold({axis}, {window.length}, 1)"
    if not simple:
        text += ".movedim(-1, 1)" if dim == 0 else f".movedim(({dim}, -1), (0, {dim + 1}))"
    return f"{text}.index_select(0, {starts})"
