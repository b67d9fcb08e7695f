"""Models on many devices: their wrappers, where they are called, and what communication costs."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.syntax.source import Source, only_target
from warpline.wire.run import Site
from warpline.wire.sites import Parallel, facts_of


def wrappers(context: Context, *types: str) -> list[Site]:
    """Where the model was wrapped in one of ``types`` ("DataParallel", "DistributedDataParallel")."""
    return [site for site in context.sites("parallel") if facts_of(Parallel, site).type in types]


def calls_of(context: Context, site: Site) -> list[LineCost]:
    """The costs of the lines that call the wrapped model: those noted as uses, else lines that call
    the name that it was given."""
    if site.uses:
        return context.costs(site.uses)
    name = wrapper_name(context, site)
    found = []
    for cost in context.profile.lines:
        source = context.source(cost.file)
        if name and any(source.code(call.func) == name for call in source.calls(cost.line)):
            found.append(cost)
    return found


def wrapper_name(context: Context, site: Site) -> str:
    """``model`` of ``model = DistributedDataParallel(…)``; "" when it is not so plain."""
    found = wrapper_call(context, site)
    if found is None:
        return ""
    target = only_target(found[0].parent(found[1]))
    return found[0].code(target) if target is not None else ""


def wrapper_call(context: Context, site: Site) -> tuple[Source, cst.Call] | None:
    """The ``DDP(...)`` or other wrapper's call at a site, or None where the text shows none."""
    source = context.source(site.file)
    call = source.call(site.line, str(facts_of(Parallel, site).type), "DDP")
    if call is None:
        call = next((c for c in source.calls(site.line) if c.args), None)
    return (source, call) if call is not None else None


def _sends_back(context: Context, cost: LineCost) -> bool:
    if not context.matters(cost.idle_ms):
        return False
    return context.source(cost.file).call(cost.line, "backward") is not None


def exposed_communication(context: Context) -> tuple[float, list[LineCost]]:
    """Time per step in which collectives ran and nothing hid them, with the lines that caused them."""
    total = context.profile.totals.get("exposed_communication_ms")
    lines = [cost for cost in context.profile.lines if cost.communication_ms > 0]
    if not lines and not context.on_gpu and context.profile.manifest.world_size > 1:
        # Gloo leaves no kernels: its exchanges are the time in which nothing runs during the backward pass.
        lines = [cost for cost in context.profile.lines if cost.idle_ms > 0 and _sends_back(context, cost)]
        idle = sum(cost.idle_ms for cost in lines)
        return min(idle, total or idle), sorted(lines, key=lambda cost: -cost.idle_ms)
    if total is None:
        # A line's step_ms holds only moments in which its kernels were on the critical path.
        total = sum(min(cost.communication_ms, cost.step_ms) for cost in lines)
    return float(total), sorted(lines, key=lambda cost: -cost.communication_ms)
