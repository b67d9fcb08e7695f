"""The edit that selects, before a layer, the positions that a cross entropy counts."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.before_layer import BY_HAND, only_layer, rank_of
from warpline.rulekit.context import Context
from warpline.rulekit.graph import Graph
from warpline.rulekit.graph.graph import Node
from warpline.rulekit.graph.rows import LOSSES, PartlyUsed
from warpline.rulekit.terms import atom, names_in
from warpline.syntax.edits import Edits, Refused, free_name
from warpline.syntax.source import Source, Statement, called_name, is_method, only_target

_LOSS = "torch.nn.functional.cross_entropy"
_LAYER = "torch.nn.CrossEntropyLoss"
#: Give the same numbers in the same order.
_SHAPED = ("flatten", "view", "reshape", "view_as", "reshape_as", "unflatten")
#: What a mask or targets may be made by: it gives the same before the layer as behind it.
_SAME = (*_SHAPED, "contiguous", "to", "float", "bool", "long", "type_as", "ne", "size")
#: The target that is ignored where no other is named.
_USUAL = -100
#: Where `nll_loss_forward` is told whether to add up, and which target it ignores.
_REDUCTION, _IGNORED = 3, 4


def before_loss(context: Context, graph: Graph, found: PartlyUsed) -> Fix:
    """Select the positions that count of the layer's input and of the targets: those whose target is not
    ignored, or that a mask keeps in the sum of all losses. Raises Refused where the layer, the loss and the
    mask are not in one block, or something else reads what they make."""
    facts = context.profile.facts
    if facts.replays or facts.captured_graphs:  # they cannot wait for the number of positions
        raise Refused(BY_HAND)
    source, layer, given = only_layer(context, graph, found.product)
    scores = _only_read(source, layer)
    loss, targets = _loss_of(source, scores, rank_of(graph, found))
    computed = _recorded(source, graph, loss)
    labels = _flat(source.code(targets), computed.name != "nll_loss_forward")
    each: cst.BaseExpression = loss
    total: cst.BaseExpression = loss
    weights, is_bool = "", False
    if computed.argument(_REDUCTION, "reduction") == 0:
        each = _only_read(source, loss)
        mask, total = _masked(source, each)
        value = _left_out(source, graph, found, mask)
        weights = _flat(source.code(mask), len(graph.shape(value)) > 1)
        is_bool = graph.dtype(value) == "bool"
        wanted = weights if is_bool else f"{atom(weights)} != 0"
        moved = [mask, targets]
    else:
        wanted = f"{atom(labels)} != {_ignored(source, loss, computed)}"
        moved = [targets]
    own = _checked(source, [layer, loss, total], moved)

    edits, name = Edits(source), wanted
    if not wanted.isidentifier():
        name = free_name(source, "counted", "wanted", "scored")
        edits.insert_before(own, f"{name} = {wanted}")
    rank = rank_of(graph, found)
    rows = atom(source.code(given)) + (f".flatten(0, {rank - 2})" if rank > 2 else "")
    selected = {given: f"{rows}[{name}]"}
    code = source.code(scores)
    if scores is layer:
        code = source.rewritten(layer, selected)
    else:
        edits.replace(given, selected[given])
    code = source.rewritten(loss, {loss.args[0].value: code, targets: f"{atom(labels)}[{name}]"})
    if each is not loss:
        edits.replace(loss, code)
        code = source.code(each)
    if total is not each:
        code = f"{code}.sum()" if is_bool else f"({code} * {atom(weights)}[{name}]).sum()"
        edits.replace(total, code)
    elif each is loss:
        edits.replace(loss, code)
    return edits.fix("Select the positions before the layer", "unsafe")


def _flat(code: str, several: bool) -> str:
    return f"{atom(code)}.flatten()" if several else code


def _only_read(source: Source, node: cst.BaseExpression) -> cst.BaseExpression:
    """``node``, or the one place that reads the name it is given. Raises Refused for another one."""
    target = only_target(source.parent(node))
    if target is None:
        return node
    uses = source.uses(target.value, source.scope(node)) if isinstance(target, cst.Name) else []
    if len(uses) != 2 or uses[0] is not target:
        raise Refused(BY_HAND)
    return uses[1]


def _loss_of(source: Source, scores: cst.BaseExpression, rank: int) -> tuple[cst.Call, cst.BaseExpression]:
    """The cross entropy of ``scores``, whose positions keep their order, and its targets."""
    node, above = scores, source.parent(scores)
    if isinstance(above, cst.Attribute) and isinstance(call := source.parent(above), cst.Call):
        numbers = [source.literal(one.value) for one in call.args]
        turned = called_name(call) == "transpose" and rank == 3 and numbers in ([1, 2], [2, 1])
        if not turned and not is_method(call, *_SHAPED):
            raise Refused(BY_HAND)
        node, above = call, source.parent(call)
    loss = source.parent(above) if isinstance(above, cst.Arg) else None
    given = loss.args if isinstance(loss, cst.Call) else ()
    plain = [one.value for one in given if one.keyword is None and not one.star]
    if not isinstance(loss, cst.Call) or len(plain) != 2 or plain[0] is not node:
        raise Refused(BY_HAND)
    made = source.assigned(source.code(loss.func))
    layer = made[0].func if len(made) == 1 and isinstance(made[0], cst.Call) else None
    if source.name(loss.func) != _LOSS and (layer is None or source.name(layer) != _LAYER):
        raise Refused(BY_HAND)
    return loss, plain[1]


def _recorded(source: Source, graph: Graph, loss: cst.Call) -> Node:
    nodes = [one for line in source.extent(loss) for one in graph.at((source.path, line))]
    found = [one for one in nodes if one.name in LOSSES]
    if len(found) != 1:
        raise Refused(BY_HAND)
    return found[0]


def _ignored(source: Source, loss: cst.Call, computed: Node) -> str:
    """The target that ``loss`` ignores, as code."""
    written = source.argument(loss, "ignore_index")
    number = computed.argument(_IGNORED, "ignore_index", _USUAL)
    if written is None and number != _USUAL:  # a layer's, which another line says
        raise Refused(BY_HAND)
    return source.code(written.value) if written is not None else str(_USUAL)


def _masked(source: Source, each: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """What the losses of all positions are multiplied by, and the sum of that."""
    node, above = each, source.parent(each)
    while isinstance(above, cst.Attribute) and is_method(call := source.parent(above), *_SHAPED):
        node, above = call, source.parent(call)
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Multiply):
        raise Refused(BY_HAND)
    mask = above.right if above.left is node else above.left
    outer = source.parent(above)
    total = source.parent(outer) if isinstance(outer, (cst.Attribute, cst.Arg)) else None
    if not isinstance(total, cst.Call) or total.args[1:]:
        raise Refused(BY_HAND)
    function = isinstance(outer, cst.Arg) and outer.keyword is None and source.name(total.func) == "torch.sum"
    if not function and not (is_method(total, "sum") and not total.args):
        raise Refused(BY_HAND)
    return mask, total


def _left_out(source: Source, graph: Graph, found: PartlyUsed, mask: cst.BaseExpression) -> int:
    """The mask as it was recorded. Raises Refused if it is not the one product of its line, or keeps other
    positions than the step uses."""
    unscored = {one.value: one.unscored for one in graph.flow.unscored}
    nodes = [one for line in source.extent(mask) for one in graph.at((source.path, line))]
    products = [one for one in nodes if one.name == "mul"]
    masks = [
        value
        for one in products
        for value in one.inputs
        if value in unscored and not _is_loss(graph, value)  # losses of ignored targets are 0 as well
    ]
    if len(products) != 1 or len(masks) != 1 or unscored[masks[0]] != found.rows - found.used:
        raise Refused(BY_HAND)
    return masks[0]


def _is_loss(graph: Graph, value: int) -> bool:
    made = graph.producer.get(graph.origin(value))
    return made is not None and made.name in LOSSES


def _checked(source: Source, parts: list[cst.BaseExpression], moved: list[cst.BaseExpression]) -> Statement:
    """The statement of the layer. Raises Refused where those of ``parts`` are not in one block, or what is
    ``moved`` before them may be something else there."""
    block = source.block(parts[0])
    own = [one for one in (source.statement(part) for part in parts) if one is not None and one in block]
    names = {name for one in moved for name in names_in(one)}
    calls = [call for one in moved for call in source.nodes(cst.Call, within=one)]
    if len(own) != len(parts) or not all(is_method(call, *_SAME) for call in calls):
        raise Refused(BY_HAND)
    for part in block[block.index(own[0]) : block.index(own[-1]) + 1]:
        bound = {one.value for one in source.nodes(cst.Name, within=part) if source.binds(one)}
        if names & (bound if part in own else names_in(part)):
            raise Refused(BY_HAND)
    return own[0]
