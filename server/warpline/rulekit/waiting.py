"""Waiting for the device: its possible cost, and the use of a value that is read from the device."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from warpline.model import costs
from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.syntax.source import Source, is_method
from warpline.wire.sites import Sync, facts_of

#: Methods that bring a value of the device to the host, and wait for it.
READS = ("item", "tolist", "cpu", "numpy")


#: Waits a step from which on a line waits in most of them.
USUAL = costs.bound("waits-usually")


@dataclass(frozen=True, slots=True)
class Wait:
    """A line at which the host waits for the device in each step; times per step.

    While the host waits the device works; lost is the time in which the device then waits for the
    host to queue more. If the device is never idle, a wait costs nothing.

    ``waited_ms``: as long as it was seen to, under the profiler or in the surveyed step. ``lost_ms``: of
    that, what it can cost. ``most_ms``: what it may cost at most, where nothing looks on.
    """

    cost: LineCost
    waited_ms: float
    lost_ms: float
    most_ms: float
    calls: float = 0.0
    what: tuple[str, ...] = ()  # of ``Sync.what``


def waits(context: Context) -> list[Wait]:
    """The lines that wait, by what was seen of them: waits that the trace holds, and calls of the script's
    own that need a value of the device.

    A profiler slows the host. The device is then done sooner than the host gets to the call, and a wait
    that costs much may take next to no time. So does the survey, but less, and it says by how much; and so do
    other processes that have its cores, as far as that is known. No wait got shorter by more than that.
    """
    found: dict[tuple[str, int], list[Sync]] = {}
    functions: dict[tuple[str, int], str] = {}
    for site in context.sites(Sync.KIND):
        found.setdefault(site.place, []).append(facts_of(Sync, site))
        functions[site.place] = site.function
    idle = context.idle_ms()
    surveyed_ms = context.profile.facts.flags.surveyed_ms
    slowed = 0.0 if surveyed_ms is None else surveyed_ms - context.step_ms + context.crowded_ms()
    slowed = max(0.0, slowed)
    places = dict.fromkeys([cost.place for cost in context.profile.lines if _own_ms(cost) > 0])
    made = []
    for place in [*places, *(place for place in found if place not in places)]:
        cost = context.cost(*place) or LineCost(*place, functions.get(place, ""))
        seen = found.get(place, [])
        waited = max(_own_ms(cost), sum(one.wait_ms or 0.0 for one in seen))
        # The trace of other steps holds it too: it is not a look at every hundredth one.
        asked = cost.syncs >= USUAL and any(one.direct and one.wait_ms is not None for one in seen)
        made.append(
            Wait(
                cost,
                waited,
                min(waited, idle),
                min(waited + slowed, idle) if asked else min(waited, idle),
                max(cost.syncs, float(sum(one.calls or 0 for one in seen))),
                tuple(one.what for one in seen if one.what is not None),
            )
        )
    return made


def _own_ms(cost: LineCost) -> float:
    """The wait without that of anomaly detection, which checks each gradient on the host."""
    return max(0.0, cost.sync_ms - cost.check_ms)


def read_call(source: Source, line: int) -> cst.Call | None:
    """The ``.item()``, ``.cpu()`` … on a line; the innermost of several."""
    calls = [call for call in source.calls(line) if is_method(call, *READS)]
    return calls[-1] if calls else None


def counter(source: Source, node: cst.CSTNode) -> tuple[str, cst.For] | None:
    """The counting name of the innermost ``for i, … in enumerate(…)`` or ``for i in range(…)``."""
    for loop in source.loops(node):
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            return None
        target: cst.BaseExpression = loop.target
        if source.is_named(loop.iter.func, "enumerate") and isinstance(target, cst.Tuple):
            target = target.elements[0].value
        elif not source.is_named(loop.iter.func, "range", "trange"):
            return None
        return (target.value, loop) if isinstance(target, cst.Name) else None
    return None
