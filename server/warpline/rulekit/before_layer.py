"""The edit that selects positions before a layer, where a function, or its caller, selects them then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.graph.rows import PartlyUsed, is_alone
from warpline.rulekit.terms import names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_method

BY_HAND = "select the positions that are used before this layer, and compute it only for them"
#: Modules that make of each position its own result.
_EACH = tuple(f"torch.nn.{name}" for name in ("Linear", "GELU", "ReLU", "SiLU", "Tanh", "LayerNorm"))
_FUNCTION = "torch.nn.functional.linear"
_CHOOSE = ("gather", "take_along_dim")
#: Indices with as many entries at their end as what they are laid over: they fit other features as well.
_SPREAD = (".unsqueeze(-1)", ".unsqueeze(2)", "[..., None]", "[:, :, None]")
#: What a parameter for the positions may be called.
_NAMES = ("positions", "at_positions", "kept_positions")
#: Calls that give the same before the layer is called as behind it.
_PURE = ("len", "size", "arange")
#: What calls modules by itself, and takes less than Python does.
_BETWEEN = ("torch.jit", "DataParallel")
_ALL = cst.Slice(lower=None, upper=None)


@dataclass(frozen=True)
class Chain:
    """What is done to ``base``, up to ``node``, which is a selection of positions."""

    base: cst.BaseExpression
    node: cst.BaseExpression


def before_layer(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Move what selects positions from the result of a layer to its input. Raises Refused where that is in
    another function, the result is read otherwise, or the layer is not seen to treat each position alone."""
    place = graph.place(found.product)
    source = context.source(place[0] if place is not None else "")
    layers = layers_at(source, graph, found.product)
    if len(layers) != 1:
        raise Refused(BY_HAND)
    ((layer, given),) = layers
    rank, columns = rank_of(graph, found), found.columns
    assign = source.parent(layer)
    if not isinstance(assign, cst.Assign):
        direct = chain_of(source, graph, layer, rank, columns)
        if direct is None:
            raise Refused(BY_HAND)
        chain = of_all(source, graph, found, direct)
        edits = Edits(source)
        selected = _with(source, chain, given, "")
        edits.replace(chain.node, source.rewritten(layer, {given: selected}))
        return edits.fix("Select the positions before the layer", "unsafe")
    target = assign.targets[0].target if len(assign.targets) == 1 else None
    if not isinstance(target, cst.Name):
        raise Refused(BY_HAND)
    chain = of_all(source, graph, found, only_use(source, graph, assign, target, rank, columns))
    edits = Edits(source)
    edits.replace(given, _with(source, chain, given, target.value))
    edits.replace(chain.node, target.value)
    return edits.fix("Select the positions before the layer", "unsafe")


def of_all(source: Source, graph: Graph, found: PartlyUsed, chain: Chain) -> Chain:
    """``chain``. Raises Refused where more positions are left of it than the step uses."""
    made = [
        value
        for line in source.extent(chain.node)
        for node in graph.at((source.path, line))
        for value in node.outputs
        if graph.shape(value)[-1:] == (found.columns,)
    ]
    if min((graph.size(one) // found.columns for one in made), default=0) != found.used:
        raise Refused(BY_HAND)
    return chain


def layers_at(
    source: Source, graph: Graph, product: Node
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The calls of a linear layer on the line of ``product``, each with what it is given."""
    line = (graph.place(product) or ("", 0))[1]
    calls = [
        (call, call.args[0].value)
        for call in source.calls(line)
        if call.args and call.args[0].keyword is None and not call.args[0].star
    ]
    found: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [
        (call, first)
        for call, first in calls
        if source.name(call.func) == _FUNCTION or _is_layer(source, call)
    ]
    for other in source.at(line, cst.BinaryOperation):
        right = source.code(other.right)
        if isinstance(other.operator, cst.MatrixMultiply) and right.endswith((".weight.T", ".weight.t()")):
            found.append((other, other.left))
    if found or not is_alone(graph, product):
        return found
    return [one for one in calls if len(one[0].args) == 1 and source.literal(one[1]) is NOT_LITERAL]


def _is_layer(source: Source, call: cst.Call) -> bool:
    """Whether it calls the object's own module that its class makes as one linear layer, or as a sequence
    that ends with one and has no layer across positions."""
    owner = source.enclosing(call, cst.ClassDef)
    name = source.code(call.func)
    if owner is None or not name.startswith("self.") or len(call.args) != 1:
        return False
    made = source.assigned(name, owner)
    if len(made) != 1 or not isinstance(made[0], cst.Call):
        return False
    parts = made
    if source.is_named(made[0].func, "Sequential"):
        parts = [arg.value for arg in made[0].args]
    names = [source.name(one.func) if isinstance(one, cst.Call) else "" for one in parts]
    return bool(names) and names[-1] == _EACH[0] and all(one in _EACH for one in names)


def rank_of(graph: Graph, found: PartlyUsed) -> int:
    """The number of dimensions of the layer's result. torch computes two, and views them as the input's."""
    value = found.product.outputs[0]
    own = graph.place(found.product)
    for node in graph.consumers.get(value, ()):
        again = node.name in ("view", "_unsafe_view") and graph.place(node) == own
        if again and graph.shape(node.outputs[0])[-1:] == (found.columns,):
            return max(len(graph.shape(value)), len(graph.shape(node.outputs[0])))
    return len(graph.shape(value))


def only_use(
    source: Source, graph: Graph, assign: cst.Assign, target: cst.Name, rank: int, columns: int
) -> Chain:
    """The selection that is all that is done to what ``assign`` gives a name. Raises Refused."""
    own = source.statement(assign)
    block = source.block(assign)
    if own is None or own not in block:
        raise Refused(BY_HAND)
    names = [one for one in source.uses(target.value, source.scope(assign)) if not source.inside(one, own)]
    later = [one for one in names if source.line(one) > source.line(own)]
    bound = [one for one in later if source.binds(one)]
    if bound:  # up to the next value of the name
        end = source.line(bound[0])
        later = [one for one in later if source.line(one) <= end and not source.binds(one)]
    if not later or (source.loops(assign) and not bound and len(names) > len(later)):
        raise Refused(BY_HAND)
    chain = chain_of(source, graph, later[0], rank, columns)
    last = source.statement(later[0])
    if chain is None or last not in block or not all(source.inside(one, chain.node) for one in later):
        raise Refused(BY_HAND)
    used = names_in(chain.node) - {target.value}
    between = block[block.index(own) + 1 : block.index(last)]
    if not all(used.isdisjoint(names_in(part)) for part in between):
        raise Refused(BY_HAND)
    if used & {one.value for one in source.nodes(cst.Name, within=own) if source.binds(one)}:
        raise Refused(BY_HAND)
    return chain


def chain_of(source: Source, graph: Graph, base: cst.BaseExpression, rank: int, columns: int) -> Chain | None:
    """What selects positions of ``base``, and leaves the last of its ``rank`` dimensions as it is."""
    node: cst.BaseExpression = base
    found: cst.BaseExpression | None = None
    while rank > 1:
        above = source.parent(node)
        if isinstance(above, cst.Subscript) and above.value is node:
            left = _indexed(source, graph, above, rank, columns)
            if left is None:
                break
            node = found = above
            rank = left
            continue
        if (taking := source.taking(node)) is not None:  # `torch.gather(base, 1, where)`
            chosen = taking.args[0] is above and source.name(taking.func) in (
                f"torch.{one}" for one in _CHOOSE
            )
            found = taking if chosen and _is_choice(source, taking, base, 1, rank) else found
            break
        call = source.parent(above) if isinstance(above, cst.Attribute) and above.value is node else None
        if not isinstance(call, cst.Call):
            break
        if called_name(call) in _CHOOSE:
            found = call if _is_choice(source, call, base, 0, rank) else found
            break
        numbers = [source.literal(arg.value) for arg in call.args]
        dims = [one for one in numbers if type(one) is int]
        if called_name(call) == "flatten" and len(dims) == 2 and 0 <= dims[0] < dims[1] < rank - 1:
            rank -= dims[1] - dims[0]
        elif called_name(call) == "select" and len(numbers) == 2 and dims and 0 <= dims[0] < rank - 1:
            rank, found = rank - 1, call
        elif called_name(call) == "unflatten" and dims and 0 <= dims[0] < rank - 1 and len(numbers) == 2:
            sizes = call.args[1].value
            if not isinstance(sizes, (cst.Tuple, cst.List)):
                break
            rank += len(sizes.elements) - 1
        else:
            break
        node = call
    return Chain(base, found) if found is not None else None


def _indexed(source: Source, graph: Graph, part: cst.Subscript, rank: int, columns: int) -> int | None:
    """How many dimensions are left of ``part``, which leaves the last one; None where it may not."""
    indices = [one.slice for one in part.slice]
    if len(indices) == rank and _is_all(indices[-1]):
        indices.pop()  # all features
    if len(indices) >= rank:
        return None
    numbers = [source.literal(one.value) for one in indices if isinstance(one, cst.Index)]
    if any(one is None or one is Ellipsis or isinstance(one, (bool, tuple, list)) for one in numbers):
        return None
    if all(type(one) is int for one in numbers):
        return rank - len(numbers)
    # Tensors of places, or a mask, which may be one of several dimensions.
    nodes = [one for one in graph.at(source.place(part)) if one.name == "index" and one.outputs]
    kept = [
        graph.shape(one.outputs[0])[-1:] == graph.shape(one.inputs[0])[-1:] == (columns,) for one in nodes
    ]
    return 1 if kept and all(kept) else None


def _is_choice(source: Source, call: cst.Call, base: cst.BaseExpression, at: int, rank: int) -> bool:
    """Whether ``gather`` or ``take_along_dim`` takes whole positions, whatever features they have."""
    names = ("dim", "index") if called_name(call) == "gather" else ("indices", "dim")
    args = [source.argument(call, name, at + position) for position, name in enumerate(names)]
    dim, index = args if called_name(call) == "gather" else args[::-1]
    number = source.literal(dim.value if dim is not None else None)
    if index is None or type(number) is not int or not 0 <= number < rank - 1 or len(call.args) != at + 2:
        return False
    code, own = source.code(index.value), source.code(base)
    if called_name(call) == "take_along_dim":
        return code.endswith(_SPREAD)
    widths = (f"{own}.size(-1))", f"{own}.shape[-1])", f"{own}.size(2))", f"{own}.shape[2])")
    return ".expand(" in code and code.endswith(widths)


def _with(source: Source, chain: Chain, given: cst.BaseExpression, name: str) -> str:
    """The selection, of ``given`` instead. Raises Refused where that would be computed more than once."""
    plain = isinstance(given, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    code = source.code(given) if plain else f"({source.code(given)})"
    again: list[cst.BaseExpression] = [*source.uses(name, chain.node)] or [chain.base]
    if len(again) > 1 and not isinstance(given, cst.Name):
        raise Refused(BY_HAND)
    return source.rewritten(chain.node, dict.fromkeys(again, code))


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
    plain = isinstance(given, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    code = source.code(given) if plain else f"({source.code(given)})"
    edits.replace(function.params, f"{params}, {fresh}=slice(None)")
    edits.replace(given, f"{code}[{chosen.first}{fresh}]")
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
    if not parts or not all(pure):
        return None
    while len(parts) > 1 and _is_all(parts[-1]):
        parts = parts[:-1]
    codes = [_written(source, part) for part in parts]
    if len(parts) == 2 and _is_all(parts[0]) and rank > 2:
        return _Chosen(chain, ":, ", codes[1])
    return _Chosen(chain, "", codes[0] if len(codes) == 1 else f"({', '.join(codes)})")


def _is_all(part: cst.CSTNode) -> bool:
    return isinstance(part, cst.Slice) and not (part.lower or part.upper or part.step)


def _written(source: Source, part: cst.CSTNode) -> str:
    if not isinstance(part, cst.Slice):
        return source.code(part)
    ends = [part.lower, part.upper, *([part.step] if part.step else [])]
    return f"slice({', '.join(source.code(one) if one is not None else 'None' for one in ends)})"
