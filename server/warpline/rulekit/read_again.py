"""Lists and tensors that grow in each step, and that each step reads as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.graph import graph_around
from warpline.rulekit.growing import LEAST_LENGTHS, longer_each_step
from warpline.rulekit.keeping import joined_for_good, kept_for_good
from warpline.syntax.source import Source

#: They make one tensor of a list of tensors.
_JOINS = ("aten::cat", "aten::stack")


@dataclass(frozen=True, slots=True)
class Reading:
    """``place``: of what each step adds. ``keeper``: the last name of what it is added to. ``reading``: the
    lines that read all of it. ``length``: of the longest tensor there, 0 where that is not known, and then
    ``tensors`` is their number. ``epochs``: it is emptied now and then."""

    place: tuple[str, int]
    keeper: str
    reading: list[LineCost]
    length: int
    tensors: int
    epochs: bool


def read_again(context: Context) -> Iterator[Reading]:
    """What nothing is taken out of; and in training what is only emptied as a whole, as a list of an epoch's
    scores is, where nothing that is computed of it has a gradient."""
    steps = context.profile.steps.captured
    longer = {cost: size for cost in context.profile.lines if (size := longer_each_step(cost, steps))}
    summed = _summed_again(context)
    if not longer and not summed:
        return
    kept = [(*one, False) for one in (*kept_for_good(context), *joined_for_good(context, longer))]
    if any(cost.backward_ms for cost in context.profile.lines):  # a text that is generated ends
        kept += [(*one, True) for one in kept_for_good(context, epochs=True)]
    told: set[tuple[str, int]] = set()
    for source, value, keeper, epochs in kept:
        reading = [cost for cost in (*longer, *summed) if _is_read(context, cost, keeper)]
        reading = [cost for cost in reading if cost.place not in told]
        if not reading or (epochs and any(cost.nodes or cost.backward_ms for cost in reading)):
            continue
        told.update(cost.place for cost in reading)
        # The sizes of what is joined are not recorded.
        joining = [cost for cost in context.profile.lines if _joins(context, cost, keeper)]
        yield Reading(
            source.place(value),
            keeper,
            list(dict.fromkeys((*reading, *joining))),
            max((longer[cost] for cost in reading if cost in longer), default=0),
            max((summed[cost] for cost in reading if cost in summed), default=0),
            epochs,
        )


def _summed_again(context: Context) -> dict[LineCost, int]:
    """Lines that compute what the step before has computed, and go on with something new, as the sum of a
    longer and longer list does; with the number of tensors from before the step that they read."""
    graph, again = graph_around(context.profile.facts.dataflow), set(context.profile.facts.dataflow.again)
    found: dict[LineCost, int] = {}
    if graph is None or not again:
        return found
    for cost in context.profile.lines:
        nodes = graph.at(cost.place)
        pieces = {value for node in nodes for value in node.inputs if value not in graph.producer}
        if {node.index in again for node in nodes} == {True, False} and len(pieces) >= LEAST_LENGTHS:
            found[cost] = len(pieces)
    return found


def _is_read(context: Context, line: LineCost, keeper: str) -> bool:
    """Whether a line names ``keeper``, or what its function makes of that."""
    source, waiting = _named(context, line)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name.value == keeper:
            return True
        if source.is_value(name) and name.value not in seen:
            seen.add(name.value)
            made = source.assigned(name.value, within=source.enclosing(name, cst.FunctionDef))
            waiting += [inner for value in made for inner in source.nodes(cst.Name, within=value)]
    return False


def _joins(context: Context, line: LineCost, keeper: str) -> bool:
    joined = any(op.name in _JOINS and not any(op.shapes[:1]) for op in line.ops)
    return joined and keeper in {name.value for name in _named(context, line)[1]}


def _named(context: Context, line: LineCost) -> tuple[Source, list[cst.Name]]:
    source = context.source(line.file)
    statement = source.statement_at(line.line)
    simple = isinstance(statement, cst.SimpleStatementLine)
    return source, source.nodes(cst.Name, within=statement) if simple else []
