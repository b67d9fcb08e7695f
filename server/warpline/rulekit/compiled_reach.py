"""What is compiled with a function: what it calls, unless a loop waits for the device or turns too often."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from warpline.model import costs as figures
from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.kernels import is_product
from warpline.syntax.source import Source

#: Turns of a loop up to which a function is compiled.
MOST_TURNS = figures.bound("turns-compiled")


def in_order(context: Context, costs: Sequence[LineCost]) -> list[LineCost]:
    """The lines of a function as they run, each after the lines of the functions that it calls; also of its
    lines without a kernel that call another."""
    own, functions = {cost.place for cost in costs}, {function_of(cost) for cost in costs}
    calling = [one for one in context.profile.lines if one.called and function_of(one) in functions]
    found: dict[tuple[str, int], LineCost] = {}
    for cost in sorted([*costs, *calling], key=lambda cost: cost.line):
        inner = [line for line in below(context, cost) if line.place not in own]
        for line in (*sorted(inner, key=lambda line: line.place), cost):
            found.setdefault(line.place, line)
    return list(found.values())


def reached_ms(inside: Sequence[LineCost]) -> float:
    """The time of lines that are compiled, without their matrix products, which stay."""
    return sum(
        max(0.0, cost.step_ms - sum(op.device_ms for op in cost.ops if is_product(op.name) and op.launches))
        for cost in inside
    )


def breaks_at(context: Context, source: Source, function: cst.FunctionDef) -> int | None:
    """A line in a loop of the function where the host waits for a number of the device's.

    torch.compile stops at such a line, and it does not go on within a loop: the whole function runs as it
    was, and only what it calls is compiled.
    """
    first, last = source.span(function)
    for cost in context.costs_within(source.path, first[0], last[0]):
        if cost.syncs > 0 and _in_loop(source, function, cost.line):
            return cost.line
    return None


def unrolled(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    """Whether a loop of the function turns so often that it should not be compiled: torch.compile writes
    each turn out, and compiles for minutes."""
    begun = source.line(function.body.body[0])  # the line of `def` runs where the function is made
    costs = context.costs_within(source.path, begun, source.span(function)[1][0])
    most = MOST_TURNS * max(1.0, calls_of(costs))
    return any(
        cost.calls > most and cost.launches + len(cost.ops) > 0 and _in_loop(source, function, cost.line)
        for cost in costs
    )


def _in_loop(source: Source, function: cst.FunctionDef, line: int) -> bool:
    statement = source.statement_at(line)
    return statement is not None and any(source.inside(one, function) for one in source.loops(statement))


def calls_of(costs: Sequence[LineCost]) -> float:
    """How often a function ran a step, by its lines: those in loops ran more often."""
    return min((cost.calls for cost in costs if cost.calls > 0), default=0.0)
