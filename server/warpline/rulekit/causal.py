"""Whether the masks of a line's attention are causal."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.formulas.attention import hides_the_future, holds_flags
from warpline.rulekit.fused_attention import Call, masks_at
from warpline.rulekit.terms import follow, function_at
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source

NAME = "scaled_dot_product_attention"


def attention_call(context: Context, cost: LineCost) -> tuple[Source, cst.Call]:
    """The line's only call of scaled_dot_product_attention. Raises Refused where there is none, or
    several."""
    source = context.source(cost.file)
    calls = source.calls(cost.line, NAME)
    if len(calls) != 1:
        raise Refused("change the arguments of the attention where it is called")
    return source, calls[0]


def is_causal(context: Context, cost: LineCost, calls: list[Call]) -> bool:
    """Whether the masks of a line hide later positions and nothing else: as recorded in a step, else as the
    code makes them."""
    if any(one.query[-2] != one.key[-2] or one.mask[-2:] != (one.query[-2], one.key[-2]) for one in calls):
        return False
    held = masks_at(context.profile.facts.dataflow, cost.file, cost.line)
    return all(one.causal for one in held) if held else made_causal(context, cost, calls)


def made_causal(context: Context, cost: LineCost, calls: list[Call]) -> bool:
    """Whether the code makes a causal mask.

    A mask of numbers is added to the scores, so a triangle of ones hides nothing there. In compiled code only
    the text says which it was."""
    dtypes = {one.mask_dtype for one in calls}
    try:
        source, call = attention_call(context, cost)
    except Refused:
        return False
    mask, function = source.argument(call, "attn_mask", 3), function_at(source, cost.line)
    if mask is None or function is None:
        return False
    flow = follow(source, function)
    term = flow.terms.get(mask.value)
    in_graph = any(one.in_graph for one in calls)
    flags = holds_flags(source, flow.owner, mask.value) if in_graph else dtypes == {"bool"}
    return term is not None and flags is not None and hides_the_future(term, flow, flags=flags)
