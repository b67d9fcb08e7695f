"""Lines that keep tensors of a step: appended to a list, added to a sum, put into a dict."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below
from warpline.rulekit.compiled_reach import lines_in
from warpline.rulekit.context import Context
from warpline.rulekit.graph import whole_graph
from warpline.rulekit.graph.storages import VIEWS, storages
from warpline.rulekit.kept_for_good import kept_for_good
from warpline.rulekit.kept_reads import reads_only_newest
from warpline.rulekit.kept_statements import (
    BACKWARD,
    EACH_STEP,
    EMPTIES,
    KEEPS,
    keeping_statements,
    kept_by,
    last_name,
    names_read,
    parts_of,
)
from warpline.rulekit.made_in_step import is_made
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_method, receiver

_COPIES = ("clone", "copy")
#: A view of at most a half of a tensor is a part of it.
_TIMES = 2


def endless_caches(context: Context, made: LineCost) -> list[tuple[Source, cst.Decorator]]:
    """``lru_cache`` without a largest size, around a function whose body each step runs, for something new,
    and which leads to the line ``made``: it keeps all results."""
    found = []
    for source in context.sources():
        for function in source.nodes(cst.FunctionDef):
            endless = [one for one in function.decorators if _is_endless(source, one.decorator)]
            own = lines_in(context, source, function) if endless else ()
            inside = {one.place for cost in own if cost.calls >= EACH_STEP for one in below(context, cost)}
            found += [(source, one) for one in endless if made.place in inside]
    return found


def _is_endless(source: Source, decorator: cst.BaseExpression) -> bool:
    if not isinstance(decorator, cst.Call):
        return source.is_named(decorator, "functools.cache")
    unlimited = source.passed(decorator, "maxsize", 0, NOT_LITERAL) is None
    named = source.is_named(decorator.func, "lru_cache")
    return (named and unlimited) or source.is_named(decorator.func, "functools.cache")


def keepers(context: Context, *, graph: bool = True) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Values that a line of each step keeps, where the step itself makes the value, with the last name of
    what keeps them. ``graph``: only values with a graph; else any, and not what is added to a sum, which
    takes no more memory."""
    for source, statement, small in keeping_statements(context):
        for keeper, value in kept_by(source, small, sums=graph) or _gathered(context, source, small):
            if (
                (is_made(context, source, value, graph) or (graph and adds_to_graph(context, source, value)))
                and not _emptied(context, keeper)
                and not (graph and _sent_back(context, source, keeper, statement))
                and not (graph and _goes_back(source, keeper))
            ):
                yield source, value, keeper


def adds_to_graph(context: Context, source: Source, value: cst.BaseExpression) -> bool:
    """Whether a sum that gets ``value``, which its line does not compute, adds to a graph that no backward
    pass goes through."""
    cost = context.cost(source.path, source.line(value))
    read = isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)) and not source.nodes(
        cst.Call, within=source.statement(value)
    )
    return read and cost is not None and 0 < cost.nodes == cost.unused_nodes


def _gathered(
    context: Context, source: Source, small: cst.BaseSmallStatement
) -> list[tuple[str, cst.BaseExpression]]:
    """What a generator yields, where all that it yields is put into a list: ``list(records(model))``."""
    given = small.value if isinstance(small, cst.Expr) else None
    value = given.value if isinstance(given, cst.Yield) else None
    function = source.enclosing(small, cst.FunctionDef)
    if not isinstance(value, cst.BaseExpression) or function is None:
        return []
    for other, call in context.calls(function.name.value):
        around = other.taking(call)
        if around is not None and other.name(around.func) in ("list", "tuple"):
            return [("", part) for part in parts_of(value)]
    return []


def kept_for_nothing(context: Context) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Tensors of the step that are kept for good, where nothing reads more than the newest of them and their
    number."""
    for source, value, keeper in kept_for_good(context):
        inner = value
        while is_method(inner, "detach", "cpu"):  # they share the storage
            inner = receiver(inner) or inner
        keeping = context.cost(source.path, source.line(value))
        made = is_made(context, source, inner, graph=False)
        if made and reads_only_newest(context, keeper, keeping):
            yield source, value, keeper


def detached(context: Context, made: LineCost) -> list[tuple[Source, cst.Call]]:
    """Calls of ``detach`` on what the line ``made`` assigns, where a line of each step keeps the result: it
    shares the storage."""
    assigns = context.source(made.file).at(made.line, cst.Assign)
    names = {last_name(one.target) for assign in assigns for one in assign.targets} - {""}
    return [
        (source, value)
        for _, source, statement in context.each_step
        for small in statement.body
        for keeper, value in kept_by(source, small, sums=False)
        if is_method(value, "detach")
        and last_name(receiver(value)) in names
        and not _emptied(context, keeper)
    ]


def parts_kept(context: Context, made: LineCost) -> list[tuple[Source, cst.BaseExpression, int]]:
    """Values that are views of a part of what the line ``made`` made, and so keep the storage of all of it,
    each with how many times as large that is."""
    graph = whole_graph(context.profile.facts.dataflow)
    if graph is None:
        return []
    storage, found = storages(graph), []
    for source, value, _ in keepers(context, graph=False):
        if is_method(value, *_COPIES):
            continue
        scope = source.enclosing(value, cst.FunctionDef)
        given = source.assigned(source.code(value), scope) if isinstance(value, cst.Name) else []
        nodes = graph.at(source.place(given[-1] if given else value))
        if not nodes or nodes[-1].name not in VIEWS or not nodes[-1].outputs:
            continue
        whole, part = storage(nodes[-1].outputs[0]), nodes[-1].outputs[0]
        times = graph.size(whole) // max(1, graph.size(part))
        maker = graph.producer.get(whole)
        if times >= _TIMES and maker is not None and graph.place(maker) == made.place:
            found.append((source, value, times))
    return found


def _emptied(context: Context, keeper: str) -> bool:
    """Whether each step makes ``keeper`` (its last name) again, or takes something out of it."""
    for cost, source, statement in context.each_step if keeper else ():
        targets = [one.target for one in source.nodes(cst.AssignTarget, within=statement)]
        anew = any(not isinstance(one, cst.Subscript) and last_name(one) == keeper for one in targets)
        if anew and keeper not in names_read(source, statement):
            return True
        if any(last_name(receiver(call)) == keeper for call in source.calls(cost.line, *EMPTIES)):
            return True
    return False


def _sent_back(context: Context, source: Source, keeper: str, statement: cst.SimpleStatementLine) -> bool:
    """Whether each step uses ``keeper`` (its last name) for what the backward pass goes through, as with an
    auxiliary loss or a residual connection: the graph is then needed, and freed with the step."""
    function = source.enclosing(statement, cst.FunctionDef)
    calls = list(context.calls(function.name.value)) if function is not None else []
    thrown = bool(calls) and all(isinstance(other.parent(call), cst.Expr) for other, call in calls)
    for back in source.nodes(cst.Return, within=function) if function is not None and not thrown else ():
        cost = context.cost(source.path, source.line(back))
        if cost is None or cost.calls < EACH_STEP:
            continue  # at the end of a training loop, its history comes back
        if keeper in names_read(source, back, parted=False):
            return True
    own = source.place(statement)
    return any(
        cost.nodes > cost.unused_nodes
        and cost.place != own
        and keeper in names_read(other, found, parted=False)
        for cost, other, found in context.each_step
    )


def _goes_back(source: Source, keeper: str) -> bool:
    """Whether a backward pass, of a later step perhaps, may go through what ``keeper`` (its last name) holds:
    its name is followed through the assignments and loops of the file. Losses of an episode are kept so."""
    moves: list[tuple[set[str], set[str]]] = []  # names that get something, names that it comes from
    for assign in source.nodes(cst.Assign):
        made = {last_name(each) for target in assign.targets for each in parts_of(target.target)}
        moves.append((made, _values(source, assign.value)))
    for summed in source.nodes(cst.AugAssign):
        moves.append(({last_name(summed.target)}, _values(source, summed.value)))
    loops: list[cst.For | cst.CompFor] = [*source.nodes(cst.For), *source.nodes(cst.CompFor)]
    for loop in loops:
        moves.append(({last_name(each) for each in parts_of(loop.target)}, _values(source, loop.iter)))
    backward: set[str] = set()
    for call in source.nodes(cst.Call):
        held = receiver(call)
        if held is not None:
            given = _values(source, *(arg.value for arg in call.args))
            if called_name(call) in KEEPS:
                moves.append(({last_name(held)}, given))
            if called_name(call) in BACKWARD:
                backward |= given | _values(source, held)
    known = {keeper} - {""}
    while new := {name for made, of in moves if of & known for name in made} - known - {""}:
        known |= new
    return bool(backward & known)


def _values(source: Source, *nodes: cst.CSTNode) -> set[str]:
    """Last names of all that ``nodes`` read, but for the functions that they call, and for what they part
    from its graph."""
    called = {call.func for node in nodes for call in source.nodes(cst.Call, within=node)}
    return {name for node in nodes for name in names_read(source, node, without=called, parted=False)}
