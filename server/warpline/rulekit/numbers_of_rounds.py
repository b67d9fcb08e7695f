"""Edits for loops that only read the numbers of a tensor, one after the other."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.graph.graph import whole_graph
from warpline.rulekit.rounds import Rounds, nodes_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, is_method, taken

#: Functions that give the same of a number as of a tensor that holds it.
_SAME = ("int", "float", "bool")


def numbers_at_once(context: Context, found: Rounds) -> Fix:
    """A fix that goes over ``tensor.tolist()``. Raises Refused where an iteration does anything else with its
    piece than reading it, or the record does not show that the pieces are the numbers of one tensor."""
    source, loop = found.source, found.loop
    if isinstance(loop, (cst.While, cst.Call)):
        raise Refused("the loop does not go over a tensor")
    head = loop if isinstance(loop, cst.For) else loop.for_in
    target, tensor = _over(source, head.target, head.iter)
    _refuse_other_pieces(context, found)
    body = loop.body if isinstance(loop, cst.For) else loop
    uses = [one for one in source.uses(target.value, body) if one is not target]
    edits = Edits(source)
    for one in uses:
        above = source.parent(one)
        call = source.parent(above) if above is not None else None
        if isinstance(above, cst.Attribute) and isinstance(call, cst.Call) and is_method(call, "item"):
            edits.replace(call, one)
        elif not (isinstance(above, cst.Arg) and _converts(source, call)):
            raise Refused("an iteration does more than read a number")
    function = source.scope(loop)
    inside = all(source.inside(one, loop) for one in source.uses(target.value, function))
    if not uses or (isinstance(loop, cst.For) and not inside):
        raise Refused("an iteration does more than read a number")
    code = source.code(tensor)
    numbers = f"{code}.tolist()"
    if not _always_a_tensor(source, tensor, function):
        is_tensor = edits.add_import("torch.is_tensor", "import torch")
        numbers = f"({numbers} if {is_tensor}({code}) else {code})"
    edits.replace(tensor, numbers)
    return edits.fix("Read all numbers at once", "safe")


def _over(
    source: Source, target: cst.BaseExpression, through: cst.BaseExpression
) -> tuple[cst.Name, cst.Name | cst.Attribute]:
    """The name of a round's piece and the tensor, which may stand in ``enumerate``."""
    (target, through), *others = taken(target, through)
    if others or not isinstance(target, cst.Name) or not isinstance(through, (cst.Name, cst.Attribute)):
        raise Refused("the loop does not go over a tensor")
    return target, through


def _converts(source: Source, call: cst.CSTNode | None) -> bool:
    return isinstance(call, cst.Call) and source.name(call.func) in _SAME and len(call.args) == 1


def _refuse_other_pieces(context: Context, found: Rounds) -> None:
    """Raises Refused unless the loop's lines take tensors apart into single numbers."""
    graph = whole_graph(context.profile.facts.dataflow)
    nodes = nodes_at(graph, found.source, found.loop) if graph is not None else []
    apart = [node for node in nodes if node.name == "unbind"]
    if graph is None or not apart or any(len(graph.shape(node.inputs[0])) != 1 for node in apart):
        raise Refused("the record does not show that it takes numbers of one tensor")


def _always_a_tensor(source: Source, tensor: cst.BaseExpression, function: cst.CSTNode) -> bool:
    """Whether ``tensor`` is a name that its function assigns once, from a call of torch."""
    if not isinstance(tensor, cst.Name):
        return False
    bound = [one for one in source.uses(tensor.value, function) if source.binds(one)]
    made = source.given(bound[0]) if len(bound) == 1 else None
    return isinstance(made, cst.Call) and source.name(made.func).startswith("torch.")
