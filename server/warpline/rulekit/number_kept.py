"""The edit that keeps a number on its device: a tensor of one number in an attribute, read by other code."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method, only_target

#: Without arguments they give a tensor of no dimensions, which alone is formatted like a number.
_WHOLE = ("max", "min", "mean", "sum", "amax", "amin", "median", "norm", "std", "var")
#: CUDA graphs write the next step's result where this one's is.
_REPLAYED = ("reduce-overhead", "max-autotune", "cudagraphs")
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power)


def number_kept(context: Context, place: tuple[str, int], by_hand: str) -> Fix:
    """``self.peak = speed.max().item()`` without its ``item``, where all that reads the attribute, in other
    functions, formats it, or compares it in an ``if``. Raises Refused for others."""
    source = context.source(place[0])
    calls = [call for call in source.calls(place[1]) if is_method(call, "item") and not call.args]
    target = only_target(source.parent(calls[0])) if len(calls) == 1 else None
    function = source.enclosing(calls[0], cst.FunctionDef) if calls else None
    if not isinstance(target, cst.Attribute) or function is None or source.code(target.value) != "self":
        raise Refused(by_hand)
    replayed = context.profile.facts.replays or context.profile.facts.captured_graphs
    if replayed or any(word in one.text for one in context.sources() for word in _REPLAYED):
        raise Refused(by_hand)
    name = target.attr.value
    for other in context.sources():
        if f'"{name}"' in other.text or f"'{name}'" in other.text:  # by `getattr`
            raise Refused(by_hand)
        for one in other.nodes(cst.Attribute):
            if one.attr.value != name or one is target:
                continue
            inside = other is source and other.inside(one, function)
            if inside or not (_starts_as_number(other, one) or _takes_a_tensor(other, one)):
                raise Refused(by_hand)
    value = cst.ensure_type(calls[0].func, cst.Attribute).value
    whole = isinstance(value, cst.Call) and called_name(value) in _WHOLE and not value.args
    kept = f"{source.code(value)}.detach()" + ("" if whole else ".squeeze()")
    return Edits(source).replace(calls[0], kept).fix("Keep it a tensor", "unsafe")


def _starts_as_number(source: Source, attribute: cst.Attribute) -> bool:
    """Whether it is where the object's ``__init__`` gives a first number."""
    made = source.enclosing(attribute, cst.FunctionDef)
    return source.binds(attribute) and made is not None and made.name.value == "__init__"


def _takes_a_tensor(source: Source, node: cst.CSTNode) -> bool:
    """Whether what is done with the number reads the same of a tensor: after arithmetic with numbers, it is
    formatted with a format of its own, or compared in an ``if``."""
    above = source.parent(node)
    while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _ARITHMETIC):
        other = above.right if above.left is node else above.left
        if source.nodes(cst.Call, within=other):
            return False
        node, above = above, source.parent(above)
    if isinstance(above, cst.FormattedStringExpression):
        return bool(above.format_spec)
    if isinstance(above, cst.ComparisonTarget):
        above = source.parent(above)
    return isinstance(above, cst.Comparison) and isinstance(source.parent(above), cst.If)
