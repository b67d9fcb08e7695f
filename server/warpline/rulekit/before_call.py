"""The edit that tells a function which positions its caller selects of a layer's result."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.before_layer import BY_HAND, Chain, before_layer, layers_at, of_all, only_use, rank_of
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.rows import PartlyUsed
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method

_NAMES = ("positions", "at_positions", "kept_positions")


def selected_before(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Select positions of the layer's input: in the function that calls the layer, else by a new parameter of
    it, with which its caller says what it selects of the result. Raises Refused."""
    try:
        return before_layer(context, graph, found)
    except Refused:
        return _by_parameter(context, graph, found)


def _by_parameter(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    inner, outer = graph.place(found.product), graph.caller(found.product)
    rank = rank_of(graph, found)
    if inner is None or outer is None or rank < 3:
        raise Refused(BY_HAND)
    source, caller = context.source(inner[0]), context.source(outer[0])
    layers = [one for one in layers_at(source, inner[1]) if _is_returned(source, one[0])]
    function = source.enclosing(layers[0][0], cst.FunctionDef) if len(layers) == 1 else None
    if function is None or not _takes_more(context, source, function):
        raise Refused(BY_HAND)
    name = function.name.value
    calls = [
        (call, *chosen)
        for call in caller.calls(outer[1])
        if (name == "forward" or called_name(call) == name)
        and (chosen := _chosen(caller, graph, call, rank, found.columns)) is not None
    ]
    if len(calls) != 1:
        raise Refused(BY_HAND)
    ((call, chain, index),) = calls
    of_all(caller, graph, found, chain)
    used = {one.value for one in source.nodes(cst.Name, within=function)}
    used |= {one.keyword.value for one in call.args if one.keyword is not None}
    fresh = next((one for one in _NAMES if one not in used), None)
    if fresh is None or any(one.star for one in call.args) or "#" in source.code(function.params):
        raise Refused(BY_HAND)
    edits = Edits(source)
    here = edits if caller is source else Edits(caller)
    given, params = layers[0][1], source.code(function.params)
    plain = isinstance(given, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    code = source.code(given) if plain else f"({source.code(given)})"
    edits.replace(function.params, f"{params.rstrip().removesuffix(',')}, {fresh}=slice(None)")
    edits.replace(given, f"{code}[:, {fresh}]")
    if chain.base is call:
        written = caller.code(call)[:-1].rstrip().removesuffix(",")
        here.replace(chain.node, f"{written}, {fresh}={index})")
    else:
        here.set_argument(call, fresh, index)
        here.replace(chain.node, caller.code(chain.base))
    others = [] if here is edits else [here]
    return edits.fix("Select the positions before the layer", "unsafe", *others)


def _is_returned(source: Source, layer: cst.BaseExpression) -> bool:
    """Whether the layer's result is what the function returns, as it is."""
    above = source.parent(layer)
    if not isinstance(above, cst.Assign):
        return isinstance(above, cst.Return)
    name = source.code(above.targets[0].target)
    uses = [
        one
        for one in source.nodes(cst.Name, within=source.enclosing(layer, cst.FunctionDef))
        if one.value == name and source.is_value(one)
    ]
    kinds = [type(source.parent(one)) for one in uses]
    return kinds == [cst.AssignTarget, cst.Return]


def _takes_more(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether the function can be given one more parameter: what its caller calls is no other function, as
    of another class that the script may choose."""
    params = function.params
    plain = params.params and not (params.kwonly_params or params.star_kwarg or params.posonly_params)
    owner = source.enclosing(function, cst.ClassDef)
    if (
        not plain
        or isinstance(params.star_arg, cst.Param)
        or any("torch.jit" in s.text for s in context.sources())
    ):
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
    source: Source, graph: Graph, call: cst.Call, rank: int, columns: int
) -> tuple[Chain, str] | None:
    """All that is done to the call's result, and the index along the second dimension that it takes."""
    assign = source.parent(call)
    base: cst.BaseExpression = call
    if isinstance(assign, cst.Assign):
        target = assign.targets[0].target
        if len(assign.targets) > 1 or not isinstance(target, cst.Name):
            return None
        try:
            base = only_use(source, graph, assign, target, rank, columns).base
        except Refused:
            return None
    above = source.parent(base)
    node = source.parent(above) if isinstance(above, cst.Attribute) else above
    if isinstance(node, cst.Subscript) and node.value is base:
        index = _second(source, node, rank)
    elif isinstance(node, cst.Call) and is_method(node, "select") and len(node.args) == 2:
        index = node.args[1].value if source.literal(node.args[0].value) == 1 else None
    else:
        return None
    if index is None or any(called_name(one) != "len" for one in source.nodes(cst.Call, within=index)):
        return None
    if isinstance(index, cst.Slice):
        ends = [source.code(one) if one is not None else "None" for one in (index.lower, index.upper)]
        return Chain(base, node), f"slice({', '.join(ends)})"
    return Chain(base, node), source.code(index)


def _second(source: Source, part: cst.Subscript, rank: int) -> cst.BaseExpression | cst.Slice | None:
    """``at`` of ``result[:, at]``, in which the other dimensions are as they were."""
    indices = [one.slice for one in part.slice]
    others = [*indices[:1], *indices[2:]]
    at = indices[1] if 1 < len(indices) <= rank else None
    if any(not isinstance(one, cst.Slice) or one.lower or one.upper or one.step for one in others):
        return None
    if isinstance(at, cst.Index):
        return at.value if source.literal(at.value) not in (None, Ellipsis) else None
    return at if isinstance(at, cst.Slice) and at.step is None else None
