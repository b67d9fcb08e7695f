"""Calls of `nn.MultiheadAttention` that return weights which are not read."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, only_target

#: Position of `need_weights` among the arguments of its `forward`.
_POSITION = 4


def without_weights(context: Context, place: tuple[str, int]) -> Fix:
    """`need_weights=False` for the call at ``place``. Raises Refused where that is not one call whose second
    result is plainly dropped."""
    source = context.source(place[0])
    calls = [call for call in source.at(place[1], cst.Call) if _drops_the_second(source, call)]
    if len(calls) != 1:
        raise Refused("pass `need_weights=False` where the module is called, if nothing keeps the weights")
    (call,) = calls
    if source.argument(call, "need_weights", _POSITION) is not None:
        raise Refused("`need_weights` is passed already: let it be False there")
    edits = Edits(source).set_argument(call, "need_weights", "False")
    return edits.fix("Leave out the attention's weights (need_weights=False)", "unsafe")


def _drops_the_second(source: Source, call: cst.Call) -> bool:
    """``h, _ = attention(…)`` or ``attention(…)[0]``."""
    parent = source.parent(call)
    if isinstance(parent, cst.Subscript):
        return parent.value is call and source.code(parent).endswith("[0]")
    target = only_target(parent)
    elements = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
    return len(elements) == 2 and source.code(elements[1].value) == "_"
