"""The edit that selects positions before a layer, where a function, or its caller, selects them then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.graph.rows import PartlyUsed, is_alone
from warpline.rulekit.terms import names_in
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, Statement, called_name, only_target

BY_HAND = "select the positions that are used before this layer, and compute it only for them"
#: Modules that make of each position its own result.
_EACH = tuple(f"torch.nn.{name}" for name in ("Linear", "GELU", "ReLU", "SiLU", "Tanh", "LayerNorm"))
_FUNCTION = "torch.nn.functional.linear"
_CHOOSE = ("gather", "take_along_dim")
#: Indices with as many entries at their end as what they are laid over: they fit other features as well.
_SPREAD = (".unsqueeze(-1)", ".unsqueeze(2)", "[..., None]", "[:, :, None]")


@dataclass(frozen=True)
class Chain:
    """What is done to ``base``, up to ``node``, which is a selection of positions. ``regrouped``: what is
    done before to the rows, as a method of the layer's input; ``view``: the statement that does only that."""

    base: cst.BaseExpression
    node: cst.BaseExpression
    regrouped: str = ""
    view: Statement | None = None


def before_layer(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Move what selects positions from the result of a layer to its input. Raises Refused where that is in
    another function, the result is read otherwise, or the layer is not seen to treat each position alone."""
    source, layer, given = only_layer(context, graph, found.product)
    rank, columns = rank_of(graph, found), found.columns
    assign = source.parent(layer)
    if not isinstance(assign, cst.Assign):
        direct = chain_of(source, graph, layer, rank, columns)
        if direct is None:
            raise Refused(BY_HAND)
        chain = of_all(source, graph, found, direct)
        edits = Edits(source)
        selected = _with(source, chain, given)
        edits.replace(chain.node, source.rewritten(layer, {given: selected}))
        return edits.fix("Select the positions before the layer", "unsafe")
    target = assign.targets[0].target if len(assign.targets) == 1 else None
    if not isinstance(target, cst.Name):
        raise Refused(BY_HAND)
    chain = of_all(source, graph, found, only_use(source, graph, assign, target, rank, columns))
    edits, last = Edits(source), source.statement(chain.node)
    edits.replace(given, _with(source, chain, given))
    if chain.view is not None:
        edits.remove(chain.view)
    if last is not None and source.code(last).strip() == f"{target.value} = {source.code(chain.node)}":
        edits.remove(last)
    else:
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


def only_layer(
    context: Context, graph: Graph, product: Node
) -> tuple[Source, cst.BaseExpression, cst.BaseExpression]:
    """The only call of a linear layer on the line of ``product``, and what it is given. Raises Refused."""
    place = graph.place(product)
    source = context.source(place[0] if place is not None else "")
    layers = layers_at(source, graph, product)
    if len(layers) != 1:
        raise Refused(BY_HAND)
    return source, *layers[0]


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
    view = regrouping(source, graph, later[0], columns) if rank == 2 and len(later) == 1 else None
    chain = _renamed(source, graph, view, columns) if view is not None else None
    chain = chain or chain_of(source, graph, later[0], rank, columns)
    last = source.statement(chain.node) if chain is not None else None
    if chain is None or last is None or last not in block:
        raise Refused(BY_HAND)
    parts: list[cst.CSTNode] = [chain.node, *([chain.view] if chain.view is not None else [])]
    if not all(any(source.inside(one, part) for part in parts) for one in later):
        raise Refused(BY_HAND)
    between = [one for one in block[block.index(own) + 1 : block.index(last)] if one is not chain.view]
    read = {target.value, *([chain.base.value] if isinstance(chain.base, cst.Name) else [])}
    used = set().union(*map(names_in, parts)) - read
    if any((used | (read if chain.view is not None else set())) & names_in(part) for part in between):
        raise Refused(BY_HAND)
    if used & {one.value for one in source.nodes(cst.Name, within=own) if source.binds(one)}:
        raise Refused(BY_HAND)
    return chain


@dataclass(frozen=True)
class Regrouping:
    """``call`` views rows as several dimensions, as ``code`` does with rows of other sizes."""

    call: cst.Call
    code: str
    rank: int


def regrouping(source: Source, graph: Graph, base: cst.BaseExpression, columns: int) -> Regrouping | None:
    """``base.view(batch, -1, columns)`` of ``base``, which has two dimensions."""
    above = source.parent(base)
    call = source.parent(above) if isinstance(above, cst.Attribute) and above.value is base else None
    if not isinstance(call, cst.Call) or called_name(call) not in ("view", "reshape"):
        return None
    sizes = [arg.value for arg in call.args]
    if len(sizes) == 1 and isinstance(sizes[0], (cst.Tuple, cst.List)):
        sizes = [one.value for one in sizes[0].elements]
    made = [
        graph.shape(node.outputs[0])
        for line in source.extent(call)
        for node in graph.at((source.path, line))
        if node.name in ("view", "_unsafe_view") and graph.shape(node.inputs[0])[1:] == (columns,)
    ]
    if len(sizes) < 3 or not made or any((len(one), one[-1]) != (len(sizes), columns) for one in made):
        return None
    code = ", ".join(source.code(one) for one in sizes[:-1])
    return Regrouping(call, f".unflatten(0, ({code}))", len(sizes))


def _renamed(source: Source, graph: Graph, view: Regrouping, columns: int) -> Chain | None:
    """The selection of what ``view`` gives a name."""
    assign = source.parent(view.call)
    target = only_target(assign)
    if not isinstance(assign, cst.Assign) or not isinstance(target, cst.Name):
        return None
    chain = only_use(source, graph, assign, target, view.rank, columns)
    return replace(chain, regrouped=view.code, view=source.statement(assign))


def chain_of(source: Source, graph: Graph, base: cst.BaseExpression, rank: int, columns: int) -> Chain | None:
    """What selects positions of ``base``, and leaves the last of its ``rank`` dimensions as it is."""
    view = regrouping(source, graph, base, columns) if rank == 2 else None
    if view is not None:
        chain = chain_of(source, graph, view.call, view.rank, columns)
        return replace(chain, regrouped=view.code) if chain is not None else None
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
    if len(indices) == rank and is_all(indices[-1]):
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


def _with(source: Source, chain: Chain, given: cst.BaseExpression) -> str:
    """The selection, of ``given`` instead. Raises Refused where that would be computed more than once."""
    code = source.operand(given)
    name = chain.base.value if isinstance(chain.base, cst.Name) else ""
    again: list[cst.BaseExpression] = [*source.uses(name, chain.node)] or [chain.base]
    if len(again) > 1 and not isinstance(given, cst.Name):
        raise Refused(BY_HAND)
    return source.rewritten(chain.node, dict.fromkeys(again, code + chain.regrouped))


def is_all(part: cst.CSTNode) -> bool:
    return isinstance(part, cst.Slice) and not (part.lower or part.upper or part.step)
