"""Python's ``min`` and ``max`` of a tensor and another one, or a number: they wait for a comparison."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.terms import atom
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source
from warpline.wire.sites import Sync, facts_of

#: torch's function of two tensors, what ``clamp`` calls a bound that may be a number, and the operator that
#: compares the first value, a tensor, with the second, a number. Else the second is compared with the first.
_OF_TORCH = {"min": ("minimum", "max", "gt"), "max": ("maximum", "min", "lt")}
#: What else may ask whether something is true.
_ASKING = (cst.IfExp, cst.BooleanOperation, cst.Not, cst.Comparison, cst.CompIf)


def compared(context: Context, source: Source, cost: LineCost) -> cst.Call | None:
    """The call of ``min`` or ``max`` that a line waits for, where that is all it waits for."""
    asked = {facts_of(Sync, site).what for site in context.sites(Sync.KIND) if site.place == cost.place}
    calls = [one for one in source.calls(cost.line) if source.name(one.func) in _OF_TORCH]
    statement = source.statement(calls[0]) if len(calls) == 1 else None
    if asked != {"bool"} or not isinstance(statement, cst.SimpleStatementLine):
        return None
    name = source.name(calls[0].func)
    own = any(one.value == name and source.binds(one) for one in source.nodes(cst.Name))
    plain = len(calls[0].args) == 2 and not any(arg.keyword or arg.star for arg in calls[0].args)
    return calls[0] if plain and not own and not source.nodes(*_ASKING, within=statement) else None


def chosen_there(edits: Edits, call: cst.Call, cost: LineCost) -> None:
    """Lets the device choose. Raises Refused where it is not known which of the two are tensors, also in the
    first step."""
    source, (first, second) = edits.source, [arg.value for arg in call.args]
    function, bound, turned = _OF_TORCH[source.name(call.func)]
    ran = [op for op in cost.ops if op.name in ("aten::lt", "aten::gt") and len(op.dtypes) > 1]
    by_hand = f"use `torch.{function}` of two tensors, or `clamp` for a number"
    if len(ran) != 1:
        raise Refused(by_hand)
    if ran[0].dtypes[1] == "Scalar":
        tensors = [first if ran[0].name == f"aten::{turned}" else second]
    else:
        tensors = [first, second]
    tensors = [one for one in tensors if not _may_begin_as_number(source, one, call)]
    if len(tensors) == 2:
        edits.replace(call.func, f"{edits.add_import('torch', 'import torch')}.{function}")
    elif tensors:
        other = second if tensors[0] is first else first
        edits.replace(call, f"{atom(source.code(tensors[0]))}.clamp({bound}={source.code(other)})")
    else:
        raise Refused(by_hand)


def _may_begin_as_number(source: Source, node: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether ``node``, a tensor in the measured steps, may be a number before: a name that something else
    gives than ``call``, another call, or arithmetic."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return False
    given = [source.given(one) for one in source.bindings(source.code(node))]
    return not given or any(
        not isinstance(one, (cst.Call, cst.BinaryOperation))
        or source.is_named(getattr(one, "func", None), "float", "int")
        for one in given
    )
