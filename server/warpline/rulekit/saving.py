"""A change that takes device time off lines."""

from __future__ import annotations

from collections.abc import Collection

from warpline.model.change import Scale
from warpline.model.profile import LineCost
from warpline.rulekit.context import Context


def less_device_time(
    costs: Collection[LineCost], saving_ms: float, *, at_most: bool = False, assumed: bool = False
) -> Scale:
    """``saving_ms`` a step less on the device at the lines of ``costs``; what else they do there stays.

    ``at_most``: or less, and nothing in the run says how much. ``assumed``: by a figure of
    ``model/costs.json``.
    """
    whole = sum(cost.device_ms for cost in costs)
    left = 1 - min(1.0, saving_ms / whole) if whole > 0 else 1.0
    places = tuple(cost.place for cost in costs)
    return Scale(places, device=left, at_most=at_most, assumed=assumed)


def without(context: Context, cost: LineCost, saved_ms: float) -> Scale:
    """``saved_ms`` a step less, at most, of the operators on one line; 0 if it has no device time."""
    left = max(0.0, 1 - saved_ms / cost.device_ms) if cost.device_ms > 0 else 1.0
    return leaving(context, cost.place, left)


def leaving(context: Context, place: tuple[str, int], left: float) -> Scale:
    """The operators of one line take ``left`` (0 to 1) of their time, at the least. On a CPU, where operators
    are the host's work, its time shrinks with them."""
    return Scale((place,), left, 1.0 if context.on_gpu else left, at_most=True)
