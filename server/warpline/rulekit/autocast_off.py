"""An autocast that the run saw switched off, entered in statements that another one would be put around:
inside of it the outer one does nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import MOSTLY
from warpline.rulekit.context import Context
from warpline.rulekit.graph.lowered import PRODUCTS
from warpline.rulekit.lowering import Lowering
from warpline.rulekit.origins import assigned_values
from warpline.syntax.source import Source, Statement, called_name
from warpline.wire.sites import Autocast, facts_of

_DEPTH = 4  # names and functions that are followed one after the other: chosen, so that a circle ends


def entered_off(context: Context, region: Lowering) -> str | None:
    """What the text enters, switched off, around products of the statements; None where nearly all of them
    are outside of it."""
    made = [(site.place, facts_of(Autocast, site)) for site in context.sites(Autocast.KIND)]
    off = [place for place, facts in made if facts.enabled is False and facts.device != "cpu"]
    spent = {cost.place: _products(cost) for cost in region.costs} if off else {}
    for source in map(context.source, sorted({file for file, _ in spent})):
        for statement, entered in _blocks(source):
            inside = Lowering(context, source, [statement], "").costs
            under = sum(spent.get(cost.place, 0.0) for cost in inside)
            if under > (1 - MOSTLY) * sum(spent.values()) and _made(context, source, entered, off, _DEPTH):
                return source.code(entered)
    return None


def _products(cost: LineCost) -> float:
    """Device time of what autocast would run in 16 bits."""
    return sum(op.device_ms for op in cost.ops if op.name.removeprefix("aten::") in PRODUCTS)


def _blocks(source: Source) -> Iterator[tuple[Statement, cst.BaseExpression]]:
    """What is entered around a block, or by a decorator around a function."""
    for node in source.nodes(cst.With):
        yield from ((node, item.item) for item in node.items)
    for function in source.nodes(cst.FunctionDef):
        yield from ((function, one.decorator) for one in function.decorators)


def _made(
    context: Context, source: Source, node: cst.BaseExpression, off: Collection[tuple[str, int]], left: int
) -> bool:
    """Whether a context may have been made at one of these places."""
    if any((source.path, line) in off for line in source.extent(node)):
        return True
    if isinstance(node, cst.Call):
        made = ((one, function) for one in context.sources() for function in one.functions(called_name(node)))
        return any((one.path, line) in off for one, function in made for line in one.extent(function))
    if not isinstance(node, (cst.Name, cst.Attribute)) or not left:
        return False
    given = assigned_values(context, source, node)
    return not given or any(_made(context, where, value, off, left - 1) for where, value in given)
