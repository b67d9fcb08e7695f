"""What is compiled with a function: what it calls, unless it has to wait for the device in a loop."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below
from warpline.rulekit.context import Context
from warpline.syntax.source import Source


def in_order(context: Context, costs: Sequence[LineCost]) -> list[LineCost]:
    """The lines of a function as they run, each after the lines of the functions that it calls."""
    own = {(cost.file, cost.line) for cost in costs}
    found: dict[tuple[str, int], LineCost] = {}
    for cost in sorted(costs, key=lambda cost: cost.line):
        inner = [line for line in below(context, cost) if (line.file, line.line) not in own]
        for line in (*sorted(inner, key=lambda line: (line.file, line.line)), cost):
            found.setdefault((line.file, line.line), line)
    return list(found.values())


def breaks_at(context: Context, source: Source, function: cst.FunctionDef) -> int | None:
    """A line in a loop of the function where the host waits for a number of the device's.

    torch.compile stops at such a line, and it does not go on within a loop: the whole function runs as it
    was, and only what it calls is compiled.
    """
    first, last = source.span(function)
    for cost in context.costs_within(source.path, first[0], last[0]):
        statement = source.statement_at(cost.line) if cost.syncs > 0 else None
        if statement is not None and any(source.inside(loop, function) for loop in source.loops(statement)):
            return cost.line
    return None


def calls_of(costs: Sequence[LineCost]) -> float:
    """How often a function ran a step, by its lines: those in loops ran more often."""
    return min((cost.calls for cost in costs if cost.calls > 0), default=0.0)
