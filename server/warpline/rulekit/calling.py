"""Who calls: from a line of a module's ``forward`` to the script's call of it, and to the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.syntax.source import Source

_DEPTH = 4  # modules inside modules


def called_at(context: Context, cost: LineCost, own: Callable[[LineCost], bool]) -> tuple[str, int] | None:
    """The line that calls the module whose ``forward`` holds ``cost``, outside all ``forward`` methods of
    which every line that records a graph is ``own``: a line further out would hold other things as well.

    Names that hold the module are followed by the classes that were constructed; None where the line is in
    no such ``forward``, or several lines that ran call such a name.
    """
    place, function = (cost.file, cost.line), cost.function
    for _ in range(_DEPTH):
        parts = function.split(".")
        recording = [one for one in context.profile.lines
                     if (one.file, one.function) == (place[0], function) and one.nodes > 0]  # fmt: skip
        whole = bool(recording) and all(map(own, recording))
        if len(parts) < 2 or parts[-1] != "forward" or not whole:
            return place if place != (cost.file, cost.line) else None
        found = callers(context, parts[-2])
        if len(found) != 1:
            return None
        place, function = (found[0].file, found[0].line), found[0].function
    return None


def callers(context: Context, name: str) -> list[LineCost]:
    """Lines that ran and call a name that holds an object of class ``name``."""
    holders = _holders(context, name)
    found = []
    for cost in context.profile.lines:
        source = context.source(cost.file)
        calls = source.calls(cost.line) if source is not None else []
        if any(_last(call.func) in holders and source.line(call) == cost.line for call in calls if source):
            found.append(cost)
    return found


def _holders(context: Context, name: str) -> set[str]:
    """Names and attributes that are assigned an object of class ``name``."""
    found: set[str] = set()
    for path in context.profile.sources:
        source = context.source(path)
        for assign in source.nodes(cst.Assign) if source is not None else ():
            assert source is not None
            pairs = [(target.target, assign.value) for target in assign.targets]
            for target, value in pairs:
                found |= _named(source, target, value, name)
    return found


def _named(source: Source, target: cst.BaseExpression, value: cst.BaseExpression, name: str) -> set[str]:
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        return {
            each
            for one, other in zip(target.elements, value.elements, strict=False)
            for each in _named(source, one.value, other.value, name)
        }
    made = any(source.is_named(call.func, name) for call in source.nodes(cst.Call, within=value))
    return {_last(target)} - {""} if made else set()


def _last(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def evaluated_at(
    context: Context, cause: tuple[str, int]
) -> tuple[Source, cst.FunctionDef | cst.For | cst.While] | None:
    """What to put into inference mode: the function with the loop, else the loop; of the uses of a
    loader where there are any, else of the loop whose rounds are the steps, else around the cause.

    A function that makes the model is left alone: what is made in inference mode cannot be trained."""
    uses = [use for site in context.sites("loader") for use in site.uses]
    for file, line in [*uses, *_step_loops(context), cause]:
        source = context.source(file)
        statement = source.statement_at(line) if source is not None else None
        if source is None or statement is None:
            continue
        loops = source.loops_from(statement)
        function = source.enclosing(statement, cst.FunctionDef)
        if function is not None and loops and not _makes(context, source, function):
            return source, function
        if loops:
            return source, loops[-1]
    return None


def _step_loops(context: Context) -> Iterator[tuple[str, int]]:
    """Heads of loops that begin a round in each step."""
    for cost in sorted(context.profile.lines, key=lambda cost: (cost.file, cost.line)):
        if not 0.5 <= cost.calls <= 1.5:
            continue
        source = context.source(cost.file)
        statement = source.statement_at(cost.line) if source is not None else None
        if source is None or not isinstance(statement, (cst.For, cst.While)):
            continue
        if source.line(statement) == cost.line:
            yield cost.file, cost.line


def _makes(context: Context, source: Source, function: cst.FunctionDef) -> bool:
    start, end = source.span(function)
    made = [(site.file, site.line) for kind in ("module", "optimizer") for site in context.sites(kind)]
    return any(file == source.path and start[0] <= line <= end[0] for file, line in made)
