"""Time in a framework's own functions that one of its settings replaces."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.frameworks import spent_in
from warpline.wire.frameworks import constructions
from warpline.wire.sites import Framework, facts_of


def in_frameworks(context: Context, rule: str) -> Iterator[tuple[LineCost, float]]:
    """The user's lines below which ``rule`` finds something: in a function of the framework's own, known by
    its name (with the class, if that is in the setting), or in operators, as a call of the user's asks for
    them. With the milliseconds a step."""
    settings = [(one.key, each) for one in constructions() for each in one.settings if each.rule == rule]
    names = {name for _, each in settings for name in each.functions}
    called = {facts_of(Framework, site).construction for site in context.sites("framework")}
    operators = {name for key, each in settings if key in called for name in each.operators}
    for cost in context.profile.lines:
        spent = spent_in(cost, names)
        if cost.inside:
            spent = max(spent, sum(op.device_ms for op in cost.ops if op.name in operators))
        if context.matters(spent):
            yield cost, spent
