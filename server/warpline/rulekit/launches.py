"""Launches: the time that the device waits for them, and where they come from."""

from __future__ import annotations

from warpline.model.profile import LineCost
from warpline.rulekit.calling import MOSTLY, below, callers, function_of, is_forward, model_born
from warpline.rulekit.context import Context
from warpline.rulekit.kernels import COMPILED
from warpline.wire.sites import Module, facts_of

#: An operator that launches so many kernels in one call is a library's own loop (cuDNN's recurrent layers, a
#: factorisation): compiled code calls it as it is.
_OWN_LOOP = 16
#: A line with so many kinds of operators (name, phase, sizes) runs a model, and no loop over rows. Chosen.
_KINDS = 96


def launching_ms(cost: LineCost) -> float:
    """Time in which the device had nothing to do while the host was launching at this line: not while it
    worked on tensors in its own memory."""
    others = cost.loader_ms + cost.sync_ms + cost.gc_ms + cost.on_host_ms
    return max(0.0, cost.idle_ms - others) if cost.launches else 0.0


def single_share(cost: LineCost) -> float:
    """The share (0 to 1) of a line's launches that do not come from an operator with a loop of its own.
    Compiled code appears as one operator, but launches its kernels one by one."""
    ops = [op for op in cost.ops if not op.name.startswith(COMPILED)]
    own = sum(op.launches for op in ops if op.launches >= _OWN_LOOP * max(1e-9, op.count))
    return max(0.0, 1 - own / cost.launches) if cost.launches else 1.0


def launched_at(context: Context, idle: dict[LineCost, float], hottest: LineCost) -> tuple[str, int]:
    """The line that nearly all launches come from, in a script without a training step: the call, or the loop
    that runs several models; else where the model was made, else the hottest line. Of several models of one
    class, called by several lines, it is the call that makes nearly all of the calls."""
    least, cost = MOSTLY * sum(idle.values()), hottest
    several = False
    seen: set[LineCost] = set()
    while cost not in seen:
        seen.add(cost)
        inside = is_forward(function_of(cost))
        if not inside and sum(idle.get(line, 0.0) for line in below(context, cost)) >= least:
            if several or not any(map(is_forward, cost.called)):
                return cost.place
            break
        calling = callers(context, function_of(cost))
        if len(calling) > 1 and (mostly := _mostly(calling)) is not None:
            born = model_born(context, hottest)
            several = born is None or (facts_of(Module, born).count or 1) > 1
            calling = [mostly]
        source = context.source(cost.file)
        statement = source.statement_at(cost.line)
        loops = source.loops(statement) if statement is not None else []
        if loops and not calling and not inside:
            return cost.file, source.line(loops[-1])
        cost = calling[0] if len(calling) == 1 else cost
    born = model_born(context, hottest)
    return born.place if born is not None else hottest.place


def _mostly(calling: list[LineCost]) -> LineCost | None:
    """The line that makes nearly all of the calls of a function."""
    calls = sum(cost.calls for cost in calling)
    return next((cost for cost in calling if cost.calls > 0 and cost.calls >= MOSTLY * calls), None)


def is_looping(cost: LineCost) -> bool:
    """Whether a Python loop of the user's over rows launches here: such a loop has a rule of its own."""
    whole_model = bool(cost.inside) or len(cost.ops) >= _KINDS
    return not whole_model and any(op.name == "aten::select" and op.count >= 8 for op in cost.ops)
