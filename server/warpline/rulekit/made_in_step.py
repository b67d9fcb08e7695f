"""Whether a step computes a value, and with a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import function_of
from warpline.rulekit.compiled_reach import lines_in
from warpline.rulekit.context import Context
from warpline.rulekit.entries import entries, held, origins_of
from warpline.rulekit.kept_statements import EACH_STEP, READ, parts_of
from warpline.rulekit.origins import parameters
from warpline.syntax.source import Source, called_name, is_method, receiver

#: What is read off a tensor, or parted from its graph, keeps nothing of it.
_PARTED = ("detach", "item", "float", "int", "tolist", "numpy", "str", "len", "cpu", "backward", "step")
_DEPTH = 3  # functions that a value is passed through


def is_made(
    context: Context, source: Source, value: cst.BaseExpression, graph: bool, depth: int = _DEPTH
) -> bool:
    """Whether a step computes ``value``; ``depth``: functions that it may be passed through."""
    # Of a dict, a tuple or an object one entry may have a graph, and the others may be numbers.
    parts = (entries(context, source, value) or held(context, source, value)) if graph and depth else []
    if parts:
        return any(is_made(context, other, one, graph, depth - 1) for other, one in parts)
    while isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, cst.Name):
        return _made(context, source, value, depth, graph)
    if isinstance(value, cst.Call):
        if not graph and is_method(value, "detach"):
            return is_made(context, source, receiver(value) or value, graph)  # it shares the storage
        return not _parted(source, value) and _ran(context, source, value, graph)
    # `0.9 * mean + 0.1 * loss`: that its line adds to autograd's graph says that the result has one, unless
    # what was added is read off, as in `0.9 * mean + 0.1 * criterion(scores, labels).item()`.
    made = isinstance(value, (cst.BinaryOperation, cst.IfExp)) and not any(
        source.is_named(call.func, *READ) or source.name(call.func) in ("float", "int")
        for call in source.nodes(cst.Call, within=value)
    )
    cost = context.cost(source.path, source.line(value)) if graph and made else None
    return cost is not None and cost.nodes > 0


def _made(context: Context, source: Source, name: cst.Name, depth: int, graph: bool) -> bool:
    """Whether a line that runs in each step computes what ``name`` stands for; with ``graph``, and adds to
    autograd's graph."""
    function = source.enclosing(name, cst.FunctionDef)
    scope = function if function is not None else source.module
    assigned = [
        node
        for node in source.nodes(cst.Assign, within=scope)
        for target in node.targets
        for each in source.nodes(cst.Name, within=target)
        if each.value == name.value and source.enclosing(node, cst.FunctionDef) is function
    ]
    if assigned:
        return any(
            is_made(context, source, node.value, graph)
            if isinstance(node.value, cst.BinaryOperation) and graph
            else source.nodes(cst.Call, within=node.value)
            and not _parted(source, node.value)
            and _ran(context, source, node, graph)
            for node in assigned
        )
    if function is None or depth == 0:
        return False
    if _is_of_any_name(source, function, name):
        # One with a graph is enough: then a graph is kept.
        enough = any if graph else all
        return any(
            values and enough(is_made(context, other, value, graph, depth - 1) for value in values)
            for other, values in _given(context, source, function)
        )
    names = parameters(function)
    if name.value not in names:
        return False
    called = False
    for cost in context.profile.lines:
        other = context.source(cost.file)
        for call in other.calls(cost.line, function.name.value) if cost.calls >= EACH_STEP else ():
            called = True
            given = other.argument(call, name.value, names.index(name.value))
            if given is not None and is_made(context, other, given.value, graph, depth - 1):
                return True
    return not called and not graph  # a hook: torch calls it with tensors


def _calling(context: Context, source: Source, function: cst.FunctionDef) -> list[LineCost]:
    """Lines that called the function in the captured steps, by whatever name."""
    own = {function_of(cost) for cost in lines_in(context, source, function)}
    own = {one for one in own if one[1].rpartition(".")[2] == function.name.value}
    return [cost for cost in context.profile.lines if own & set(cost.called)]


def some_with_graph(
    context: Context, source: Source, value: cst.BaseExpression
) -> list[tuple[Source, cst.BaseExpression]]:
    """What has a graph of the values that ``value`` may be, passed by any name (``**points``) or as entries
    of a dict or the like, where it is not known of all of them; else nothing."""
    whole = value
    while isinstance(whole, cst.Subscript):
        whole = whole.value
    function = source.enclosing(whole, cst.FunctionDef)
    found = [origins_of(context, source, value)]
    if function is not None and isinstance(whole, cst.Name) and _is_of_any_name(source, function, whole):
        found = [[(other, one) for one in values] for other, values in _given(context, source, function)]
    for parts in found:
        known = [part for part in parts if is_made(context, *part, graph=True, depth=_DEPTH - 1)]
        tensors = [part for part in parts if is_method(part[1], "detach")]
        if known and len(parts) > 1:
            return known if len(known) + len(tensors) < len(parts) else []
    return []


def _is_of_any_name(source: Source, function: cst.FunctionDef, name: cst.Name) -> bool:
    star = function.params.star_kwarg
    return star is not None and star.name.value == _looped(source, function, name.value)


def _given(
    context: Context, source: Source, function: cst.FunctionDef
) -> Iterator[tuple[Source, list[cst.BaseExpression]]]:
    """What is passed by other names than the function's own (``**points``), by each line that calls it; also
    where an object is called as a function."""
    own = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
    for cost in _calling(context, source, function):
        other = context.source(cost.file)
        named = [
            [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value not in own]
            for call in other.calls(cost.line)
            if function.name.value in (called_name(call), "__call__")
        ]
        yield other, max(named, key=len, default=[])


def _looped(source: Source, function: cst.FunctionDef, name: str) -> str:
    """``points`` for the ``point`` of ``for key, point in points.items()``; else the name itself."""
    for loop in source.nodes(cst.For, within=function):
        last, over = list(parts_of(loop.target))[-1], receiver(loop.iter)
        named = isinstance(last, cst.Name) and last.value == name and is_method(loop.iter, "items", "values")
        if named and isinstance(over, cst.Name):
            return over.value
    return name


def _ran(context: Context, source: Source, node: cst.CSTNode, graph: bool) -> bool:
    """Whether each step runs the line of ``node``; with ``graph``, whether that line or a function of the
    user's that it calls adds nodes to autograd's graph. A line's own cost leaves out what it calls."""
    cost = context.cost(source.path, source.line(node))
    calls = source.nodes(cst.Call, within=node)
    if cost is None or not graph:
        # Of Python's own modules (a clock, a counter) nothing takes memory of the device.
        modules = {source.name(call.func).partition(".")[0] for call in calls}
        return cost is not None and cost.calls >= EACH_STEP and not modules <= sys.stdlib_module_names
    names = {called_name(call) for call in calls}
    return cost.nodes > 0 or any(
        one.nodes > 0 and one.function.rpartition(".")[2] in names and _gives_tensor(context, one)
        for one in context.profile.lines
    )


def _gives_tensor(context: Context, cost: LineCost) -> bool:
    """Whether the line's function may return a tensor with its graph, and not a number or a tuple."""
    source, name = context.source(cost.file), cost.function.rpartition(".")[2]
    around = [one for one in source.at(cost.line, cst.FunctionDef) if one.name.value == name]
    backs = [
        back.value
        for one in around[:1]
        for back in source.nodes(cst.Return, within=one)
        if source.enclosing(back, cst.FunctionDef) is one
    ]
    return bool(backs) and not any(
        back is None
        or isinstance(back, (cst.Tuple, cst.List, cst.Dict))
        or _parted(source, back)
        or any(source.is_named(one.func, *READ) for one in source.nodes(cst.Call, within=back))
        for back in backs
    )


def _parted(source: Source, value: cst.BaseExpression) -> bool:
    outer = value.func if isinstance(value, cst.Call) else value
    return source.is_named(outer, *_PARTED)
