"""Arguments of ``F.scaled_dot_product_attention`` rewritten so that a fused kernel takes them."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.fused_attention import Call
from warpline.rulekit.terms import atom
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source


def may_be_none(source: Source, mask: cst.BaseExpression) -> bool:
    """Whether ``mask`` may be None: a parameter with a default, an attribute, a conditional expression."""
    function = source.enclosing(mask, cst.FunctionDef)
    if not isinstance(mask, cst.Name) or function is None:
        return isinstance(mask, (cst.Attribute, cst.IfExp))
    params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    return any(one.name.value == mask.value and one.default is not None for one in params)


def expanded(source: Source, arguments: list[cst.Arg], calls: list[Call]) -> dict[cst.BaseExpression, str]:
    """Each argument that is smaller than another one, with ``.expand`` added. Raises Refused where the sizes
    do not broadcast, or the larger argument has no name."""
    found: dict[cst.BaseExpression, str] = {}
    shapes = list(zip(*((call.query, call.key, call.value) for call in calls), strict=True))
    for at, arg in enumerate(arguments):
        sizes = ["-1"] * 4
        for dim in (0, 1):
            largest = max(range(3), key=lambda other: shapes[other][0][dim])
            sizes_of = [(one[at][dim], one[largest][dim]) for one in zip(*shapes, strict=True)]
            if all(size == wanted for size, wanted in sizes_of):
                continue
            if any(size not in (1, wanted) for size, wanted in sizes_of):  # another is smaller each time
                raise Refused("expand query, key and value to equal batch and head sizes")
            whole = arguments[largest].value
            if not isinstance(whole, (cst.Name, cst.Attribute)):
                raise Refused("expand query, key and value to equal batch and head sizes")
            sizes[dim] = f"{source.code(whole)}.shape[{dim}]"
        if sizes != ["-1"] * 4:
            found[arg.value] = f"{atom(source.code(arg.value))}.expand({', '.join(sizes)})"
    return found
