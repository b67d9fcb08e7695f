"""The edit that selects positions before a layer, where a function returns the layer's result, and its caller
selects them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.before_layer import (
    BY_HAND,
    Chain,
    chain_of,
    is_all,
    layers_at,
    of_all,
    only_use,
    rank_of,
)
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.rows import PartlyUsed
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method

#: What a parameter for the positions may be called.
_NAMES = ("positions", "at_positions", "kept_positions")
#: Calls that give the same before the layer is called as behind it.
_PURE = ("len", "size", "arange")
#: What calls modules by itself, and takes less than Python does.
_BETWEEN = ("torch.jit", "DataParallel")
_ALL = cst.Slice(lower=None, upper=None)


@dataclass(frozen=True)
class _Chosen:
    """``chain`` selects by ``index``, in brackets behind the text ``first``."""

    chain: Chain
    first: str
    index: str


def by_parameter(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Select positions of the layer's input by a new parameter of the function that calls the layer, with
    which its caller says what it selects of the result. Raises Refused."""
    inner, outer = graph.place(found.product), graph.caller(found.product)
    if inner is None or outer is None:
        raise Refused(BY_HAND)
    source, caller = context.source(inner[0]), context.source(outer[0])
    layers = [
        (given, at)
        for layer, given in layers_at(source, graph, found.product)
        for at in _returned_at(source, layer)
    ]
    function = source.enclosing(layers[0][0], cst.FunctionDef) if len(layers) == 1 else None
    if function is None or not _takes_more(context, source, function):
        raise Refused(BY_HAND)
    name, (given, at) = function.name.value, layers[0]
    calls = [
        (call, chosen)
        for call in caller.calls(outer[1])
        if (name == "forward" or called_name(call) == name)
        and (chosen := _chosen(caller, graph, call, at, rank_of(graph, found), found.columns)) is not None
    ]
    if len(calls) != 1:
        raise Refused(BY_HAND)
    ((call, chosen),) = calls
    of_all(caller, graph, found, chosen.chain)
    used = {one.value for one in source.nodes(cst.Name, within=function)}
    used |= {one.keyword.value for one in call.args if one.keyword is not None}
    fresh = next((one for one in _NAMES if one not in used), None)
    if fresh is None or any(one.star for one in call.args) or "#" in source.code(function.params):
        raise Refused(BY_HAND)
    edits = Edits(source)
    here = edits if caller is source else Edits(caller)
    params = source.code(function.params).rstrip().removesuffix(",")
    edits.replace(function.params, f"{params}, {fresh}=slice(None)")
    edits.replace(given, f"{source.operand(given)}[{chosen.first}{fresh}]")
    if chosen.chain.base is call:
        written = caller.code(call)[:-1].rstrip().removesuffix(",")
        here.replace(chosen.chain.node, f"{written}, {fresh}={chosen.index})")
    else:
        here.set_argument(call, fresh, chosen.index)
        here.replace(chosen.chain.node, caller.code(chosen.chain.base))
    return edits.fix("Select the positions before the layer", "unsafe", here)


def _returned_at(source: Source, layer: cst.BaseExpression) -> Iterator[int | None]:
    """Where the layer's result is in the tuple that the function returns; None: it is all that it returns.
    Nothing where it is not returned as it is, or read as well."""
    value, above = layer, source.parent(layer)
    if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Name):
        name = above.targets[0].target
        uses = source.uses(name.value, source.scope(layer))
        if len(uses) != 2 or uses[0] is not name:
            return
        value, above = uses[1], source.parent(uses[1])
    outer = source.parent(above) if isinstance(above, cst.Element) else None
    if isinstance(above, cst.Return):
        yield None
    elif isinstance(outer, cst.Tuple) and isinstance(source.parent(outer), cst.Return):
        yield [one.value for one in outer.elements].index(value)


def _takes_more(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether the function can be given one more parameter: what its caller calls is no other function, as
    of another class that the script may choose, and nothing compiles it or divides what it is given."""
    params = function.params
    plain = bool(params.params) and not (params.kwonly_params or params.star_kwarg or params.posonly_params)
    passes_on = any(word in one.text for one in context.sources() for word in _BETWEEN)
    owner = source.enclosing(function, cst.ClassDef)
    if not plain or isinstance(params.star_arg, cst.Param) or passes_on:
        return False
    if owner is None:
        return True
    uses = [
        (other, one)
        for other in context.sources()
        for one in other.nodes(cst.Name)
        if one.value == owner.name.value
        and one is not owner.name
        and other.enclosing(one, cst.Annotation, cst.ImportFrom) is None
    ]
    bases = [source.name(one.value) for one in owner.bases]
    return bases == ["torch.nn.Module"] and not owner.decorators and len(uses) == 1 and _is_made(*uses[0])


def _is_made(source: Source, name: cst.Name) -> bool:
    """Whether the class is called there, whatever the script is told."""
    call = source.parent(name)
    choices = [
        one for one in source.ancestors(name) if isinstance(one, (cst.If, cst.IfExp, cst.Dict, cst.Match))
    ]
    chosen = any("__name__" not in source.code(getattr(one, "test", one)) for one in choices)
    return isinstance(call, cst.Call) and call.func is name and not chosen


def _chosen(
    source: Source, graph: Graph, call: cst.Call, at: int | None, rank: int, columns: int
) -> _Chosen | None:
    """What is taken of the call's result, or of what is ``at`` that place in it, if that is all that is done
    to it."""
    assign = source.parent(call)
    if not isinstance(assign, cst.Assign):
        direct = chain_of(source, graph, call, rank, columns) if at is None else None
        return _selection(source, direct, rank) if direct is not None else None
    target: cst.CSTNode = assign.targets[0].target
    if at is not None:
        names = [one.value for one in target.elements] if isinstance(target, cst.Tuple) else []
        target = names[at] if at < len(names) else assign
    if len(assign.targets) > 1 or not isinstance(target, cst.Name):
        return None
    try:
        return _selection(source, only_use(source, graph, assign, target, rank, columns), rank)
    except Refused:
        return None


def _selection(source: Source, chain: Chain, rank: int) -> _Chosen | None:
    """The one selection that ``chain`` is, as an index to pass."""
    node = chain.node
    parts: list[cst.CSTNode] = []
    if isinstance(node, cst.Subscript) and node.value is chain.base:
        parts = [one.slice.value if isinstance(one.slice, cst.Index) else one.slice for one in node.slice]
    elif is_method(node, "select") and source.parent(chain.base) is node.func:
        parts = [_ALL] * source.literal(node.args[0].value) + [node.args[1].value]
    pure = (called_name(one) in _PURE for part in parts for one in source.nodes(cst.Call, within=part))
    if chain.regrouped or not parts or not all(pure):
        return None
    while len(parts) > 1 and is_all(parts[-1]):
        parts = parts[:-1]
    codes = [_written(source, part) for part in parts]
    if len(parts) == 2 and is_all(parts[0]) and rank > 2:
        return _Chosen(chain, ":, ", codes[1])
    return _Chosen(chain, "", codes[0] if len(codes) == 1 else f"({', '.join(codes)})")


def _written(source: Source, part: cst.CSTNode) -> str:
    if not isinstance(part, cst.Slice):
        return source.code(part)
    ends = [part.lower, part.upper, *([part.step] if part.step else [])]
    return f"slice({', '.join(source.code(one) if one is not None else 'None' for one in ends)})"
