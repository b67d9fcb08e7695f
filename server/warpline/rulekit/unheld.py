"""The line that calls a part of the model whose parameters no optimizer has."""

from __future__ import annotations

from warpline.model.profile import LineCost
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.graph.unheld import Unheld

_DEPTH = 8  # callers that are followed outwards: modules inside modules, chosen


def unheld_at(context: Context, unheld: Unheld, cost: LineCost) -> LineCost | None:
    """The outermost line that computes nothing else of parameters, from ``cost`` outwards.

    A teacher and its pupil may be of one class, and so on the same lines: then the two are called by two
    lines of one function, which run in the order of their operators. None where that does not tell which is
    which.
    """
    apart = unheld.shares.get((cost.file, cost.line)) == 1
    order = unheld.order.get(function_of(cost), [])
    for _ in range(_DEPTH):
        calling = callers(context, function_of(cost))
        if apart:
            if unheld.order.get(function_of(cost), [True]) != [True] or len(calling) != 1:
                return cost
            if any(own != [True] for own in _called(unheld, calling[0])):
                return cost
            cost = calling[0]
        elif len(calling) == 1:
            cost = calling[0]
        elif len(calling) == len(order) and {function_of(one) for one in calling} == {
            function_of(calling[0])
        }:
            return calling[order.index(True)]
        else:
            return None
    return cost


def _called(unheld: Unheld, cost: LineCost) -> list[list[bool]]:
    return [unheld.order[function] for function in cost.called if function in unheld.order]
