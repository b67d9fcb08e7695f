"""Callers in the recorded step: from a line of a model to the line that calls the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.syntax.source import Source
from warpline.wire.run import Site
from warpline.wire.sites import Module, facts_of

#: A function of the user's: its file and qualified name.
Function = tuple[str, str]
#: Of the nodes that a line records, all but a few.
MOSTLY = 0.9


def function_of(cost: LineCost) -> Function:
    """The file and qualified name of a line's function."""
    return cost.file, cost.function


def callers(context: Context, function: Function) -> list[LineCost]:
    """Lines that called ``function`` in the captured steps, in the order of the text."""
    found = [cost for cost in context.profile.lines if function in cost.called]
    return sorted(found, key=lambda cost: cost.place)


def part_called(context: Context, cost: LineCost, share: Callable[[LineCost], float]) -> LineCost:
    """The call of the part of the model itself, where ``cost`` calls a helper for it: the line in the helper
    with nearly all of its ``share``. Helpers that other lines call too are not entered, nor modules."""
    seen: set[Function] = set()
    while len(cost.called) == 1 and not is_forward(helper := cost.called[0]) and helper not in seen:
        seen.add(helper)
        own = [line for line in context.profile.lines if function_of(line) == helper]
        most = max(own, key=share, default=cost)
        if callers(context, helper) != [cost] or share(most) < MOSTLY * share(cost):
            break
        cost = most
    return cost


def below(context: Context, cost: LineCost) -> list[LineCost]:
    """The line, and all lines of the functions that it calls, and of those that these call."""
    found, reached = {cost.place: cost}, set(cost.called)
    waiting = list(cost.called)
    while waiting:
        function = waiting.pop()
        for line in context.profile.lines:
            if function_of(line) == function:
                found[line.place] = line
                fresh = set(line.called) - reached
                reached |= fresh
                waiting += fresh
    return list(found.values())


def is_forward(function: Function) -> bool:
    """Whether this is some module's ``forward``."""
    return function[1].rpartition(".")[2] == "forward"


def model_born(context: Context, cost: LineCost) -> Site | None:
    """Where the model was made whose ``forward``, or a submodule's, contains the line. None where the line is
    in no ``forward``, or where several models of that class were made."""
    function, outer = function_of(cost), None
    seen: set[Function] = set()
    while function not in seen:
        seen.add(function)
        outer = function if is_forward(function) else outer
        calling = {function_of(one) for one in callers(context, function)}
        function = calling.pop() if len(calling) == 1 else function
    name = outer[1].split(".")[-2] if outer is not None and "." in outer[1] else None
    made = [site for site in context.sites("module") if str(facts_of(Module, site).type).endswith(f".{name}")]
    return made[0] if len(made) == 1 else None


def records_at(context: Context) -> LineCost | None:
    """The line outside all ``forward`` methods under which most of a step's autograd graph is recorded: the
    call of the model. None where nothing is recorded, or the record does not say who calls whom."""
    lines = [cost for cost in context.profile.lines if cost.total_nodes > 0]
    made = sum(cost.nodes for cost in lines)
    called = {function for cost in lines for function in cost.called}
    functions = {function_of(cost) for cost in lines} - called
    found: LineCost | None = None
    seen: set[Function] = set()
    while functions:
        inside = [cost for cost in lines if function_of(cost) in functions]
        if not inside:
            break
        found = max(inside, key=lambda cost: cost.total_nodes)
        seen |= functions
        whole = found.total_nodes >= MOSTLY * made
        functions = {one for one in found.called if whole and not is_forward(one)} - seen
    return found


def evaluated_at(
    context: Context, cause: tuple[str, int]
) -> tuple[Source, cst.FunctionDef | cst.For | cst.While] | None:
    """What to put into inference mode: the function that calls the model or has the loop, else the loop; of
    ``cause``, of the uses of a loader, or of the loop whose rounds are the steps.

    A function that makes the model is left alone: what is made in inference mode cannot be trained."""
    uses = [use for site in context.sites("loader") for use in site.uses]
    for file, line in [cause, *uses, *_step_loops(context), cause]:
        source = context.source(file)
        statement = source.statement_at(line)
        if statement is None:
            continue
        function = source.enclosing(statement, cst.FunctionDef)
        called = function is not None and function.name.value != "forward"
        if function is not None and called and not _makes(context, source, function):
            return source, function
        if loops := source.loops_from(statement):
            return source, loops[-1]
    return None


def _step_loops(context: Context) -> Iterator[tuple[str, int]]:
    """Heads of loops that begin a round in each step."""
    for cost in sorted(context.profile.lines, key=lambda cost: cost.place):
        if 0.5 <= cost.calls <= 1.5:
            source = context.source(cost.file)
            yield from (
                cost.place for loop in source.loops_at(cost.line)[:1] if source.line(loop) == cost.line
            )


def _makes(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    made = [site.place for kind in ("module", "optimizer") for site in context.sites(kind)]
    return any(file == source.path and line in source.extent(function) for file, line in made)
