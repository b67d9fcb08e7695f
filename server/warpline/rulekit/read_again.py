"""Lists and tensors that grow in each step, and that each step reads as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import libcst as cst

from warpline.model.change import Together
from warpline.model.profile import LineCost
from warpline.model.report import Evidence
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.draft import Draft
from warpline.rulekit.graph import graph_around
from warpline.rulekit.growing import LEAST_LENGTHS, longer_each_step
from warpline.rulekit.kept_for_good import joined_for_good, kept_for_good
from warpline.rulekit.kept_statements import EACH_STEP
from warpline.rulekit.memory import never_reused
from warpline.rulekit.message import count
from warpline.rulekit.origins import passing
from warpline.rulekit.saving import leaving
from warpline.syntax.source import Source, alone, called_name, receiver

#: Percent of the step that work on all that is kept takes already where it is a warning. Chosen, not fitted.
_MUCH = 10.0
_A_SUM = "keep what is computed of it (a sum and a count), or only the last few"
_AT_THE_END = "compute it where the epoch ends, or keep what is computed of it (sums and counts, a histogram)"
#: They make one tensor of a list of tensors.
_JOINS = ("aten::cat", "aten::stack")
#: Functions that read all of a list, modules with such, and what takes no time beside them.
_OF_ALL = frozenset({"sum", "min", "max", "sorted", "list", "tuple", "set"})
_QUICK = frozenset({"len", "float", "int", "round", "item"})
_OF_ARRAYS = frozenset({"numpy", "scipy", "sklearn", "pandas", "statistics"})
_COMPREHENSIONS = (cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)
#: The file, the function of a plain name, and the last name.
_List = tuple[str, "cst.CSTNode | None", str]


@dataclass(frozen=True, slots=True)
class _Reading:
    """``place``: of what each step adds, or of the line where Python reads all of it. ``keeper``: the last
    name of what it is added to. ``reading``: the lines that read all of it. ``length``: of the longest tensor
    there, 0 where that is not known, and then ``tensors`` is their number, 0 where Python or NumPy reads it.
    ``epochs``: it is emptied now and then."""

    place: tuple[str, int]
    keeper: str
    reading: list[LineCost]
    length: int
    tensors: int
    epochs: bool


def work_on_all(context: Context) -> Iterator[Draft]:
    """Findings about lists and tensors that grow in each step and are read as a whole in each step."""
    for one in _read_again(context):
        spent = sum(cost.step_ms for cost in one.reading)
        if not context.matters(spent):
            continue
        hottest = max(one.reading, key=lambda cost: cost.step_ms)
        held, told = never_reused(context)
        yield context.draft(
            one.place,
            f"Each step adds to `{one.keeper}`, and computes something of all that is in it"
            + (": a tensor of size {size} in the captured steps" if one.length else "")
            + (": {size} tensors" if one.tensors and not one.length else "")
            + ". That takes {spent} ({share}), and longer in each step"
            + (", until it is emptied." if one.epochs else ".")
            + held,
            {
                **_sizes(one),
                **context.spent("work on all that is kept", spent),
                **told,
            },
            cause=hottest.place,
            cost_ms=None,  # now: later steps spend more
            severity="warning" if context.share(spent) >= _MUCH else "information",
            # Less is left to compute for the newest part only.
            change=Together(tuple(leaving(context, cost.place, 0.0) for cost in one.reading)),
            fixes=[_AT_THE_END if one.epochs else _A_SUM],
        )


def _sizes(one: _Reading) -> dict[str, Evidence]:
    if one.length:
        return {"size": count("size in the last captured step", one.length)}
    return {"size": count("tensors in the recorded step", one.tensors)} if one.tensors else {}


def _read_again(context: Context) -> Iterator[_Reading]:
    """What nothing is taken out of; and in training what is only emptied as a whole, as a list of an epoch's
    scores is, where nothing that is computed of it has a gradient."""
    steps = context.profile.steps.captured
    longer = {cost: size for cost in context.profile.lines if (size := longer_each_step(cost, steps))}
    summed, host = _summed_again(context), _on_the_host(context)
    if not longer and not summed and not host:
        return
    kept = [(*one, False) for one in (*kept_for_good(context), *joined_for_good(context, longer))]
    if any(cost.backward_ms for cost in context.profile.lines):  # a text that is generated ends
        kept += [(*one, True) for one in kept_for_good(context, epochs=True)]
    told: set[tuple[str, int]] = set()
    for source, value, keeper, epochs in kept:
        own = [cost for cost in (*longer, *summed) if _is_read(context, cost, keeper)]
        function = source.enclosing(value, cst.FunctionDef)
        names = {(source.path, scope, keeper) for scope in (function, None)}
        plain = {cost: _in_loop(context, cost) for cost, lists in host.items() if lists & names}
        plain = {cost: lines for cost, lines in plain.items() if not any(line.ops for line in lines)}
        reading = [cost for cost in (*own, *plain) if cost.place not in told]
        if not reading or (epochs and any(cost.nodes or cost.backward_ms for cost in reading)):
            continue
        told.update(cost.place for cost in reading)
        # The sizes of what is joined are not recorded.
        joining = [cost for cost in context.profile.lines if _joins(context, cost, keeper)]
        # A list that Python goes through is often wanted at the end, and right where it is added to.
        whole = {cost: plain.get(cost, [cost]) for cost in reading}
        hottest = max(reading, key=lambda cost: sum(one.step_ms for one in whole[cost]))
        yield _Reading(
            hottest.place if hottest in plain else source.place(value),
            keeper,
            list(dict.fromkeys((*chain(*whole.values()), *joining))),
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


def _on_the_host(context: Context) -> dict[LineCost, set[_List]]:
    """Lines without operators that run in each step and only compute something of all that lists hold, as
    ``[score(one) for one in kept]`` and ``np.mean(kept)`` do, and loops over these, with these lists."""
    found: dict[LineCost, set[_List]] = {}
    for cost in context.profile.lines:
        source = context.source(cost.file)
        loop = source.statement_at(cost.line) if cost.calls >= EACH_STEP else None
        ends = source.nodes(cst.Break, cst.Return, within=loop)
        if isinstance(loop, cst.For) and source.line(loop) == cost.line and not ends:
            found[cost] = set(_lists(context, source, _gone_through(loop)))
    for cost, source, statement in context.each_step:
        small = alone(statement)
        if cost.ops or not isinstance(small, (cst.Assign, cst.AugAssign, cst.Return)):
            continue
        read = [one for loop in source.nodes(cst.CompFor, within=small) for one in _gone_through(loop)]
        calls = source.nodes(cst.Call, within=small)
        around = [call for call in calls if source.enclosing(call, *_COMPREHENSIONS) is None]
        read += [arg.value for call in around if _reads_all(source, call) for arg in call.args]
        if all(_reads_all(source, call) or called_name(call) in _QUICK for call in around):
            found[cost] = set(_lists(context, source, read))
    return found


def _in_loop(context: Context, cost: LineCost) -> list[LineCost]:
    """A line; of a loop, all its lines, and those of functions that only these call."""
    source, lines = context.source(cost.file), context.profile.lines
    loop = source.statement_at(cost.line)
    found = [cost]
    if isinstance(loop, cst.For):
        (first, _), (last, _) = source.span(loop)
        found = [one for one in lines if one.file == cost.file and first <= one.line <= last]
    seen = {function_of(one) for one in found}
    for function in (each for one in found for each in one.called):
        if function not in seen and set(callers(context, function)) <= set(found):
            seen.add(function)
            found += [one for one in lines if function_of(one) == function]
    return found


def _lists(context: Context, source: Source, read: Iterable[cst.BaseExpression]) -> Iterator[_List]:
    """The lists of such names; of parameters, also those that calls in each step pass."""
    for node in read:
        if not isinstance(node, (cst.Name, cst.Attribute)):
            continue
        yield _list(source, node)
        function = source.enclosing(node, cst.FunctionDef)
        if function is None or not isinstance(node, cst.Name):
            continue
        for other, call, arg in passing(context, source, function, node.value):
            cost, given = context.cost(other.path, other.line(call)), arg.value
            if cost is not None and cost.calls >= EACH_STEP and isinstance(given, (cst.Name, cst.Attribute)):
                yield _list(other, given)


def _list(source: Source, node: cst.Name | cst.Attribute) -> _List:
    """An attribute of that name is the same list in the whole file, a plain name in its function."""
    if isinstance(node, cst.Attribute):
        return source.path, None, node.attr.value
    return source.path, source.enclosing(node, cst.FunctionDef), node.value


def _gone_through(loop: cst.CompFor | cst.For) -> list[cst.BaseExpression]:
    over = loop.iter
    named = isinstance(over, cst.Call) and called_name(over) in ("zip", "enumerate")
    return [arg.value for arg in over.args] if isinstance(over, cst.Call) and named else [over]


def _reads_all(source: Source, call: cst.Call) -> bool:
    """Also ``np.stack(kept).mean()``."""
    name, held = source.name(call.func), receiver(call)
    inner = isinstance(held, cst.Call) and _reads_all(source, held)
    return inner or name in _OF_ALL or name.partition(".")[0] in _OF_ARRAYS


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
