"""What each step adds to and nothing is taken out of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.kept_statements import (
    CONTAINERS,
    EACH_STEP,
    EMPTIES,
    added_by,
    keeping_statements,
    kept_by,
    last_name,
    names_read,
)
from warpline.rulekit.origins import assignments, parameters, passing
from warpline.syntax.source import Source, called_name, is_method, receiver


def kept_for_good(
    context: Context, *, epochs: bool = False
) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """Values that a line of each step puts where nothing is ever taken out, with the last name of that: not
    emptied, cut or made again anywhere, and without a largest length. ``epochs``: it may be emptied or made
    again as a whole, but not in each step."""
    for source, _, small in keeping_statements(context):
        for keeper, value in kept_by(source, small, sums=False):
            if not keeper or isinstance(small, cst.Assign):
                continue
            keeper = _passed_as(context, source, small, keeper)
            if not _bounded(context, keeper, source, small, epochs=epochs):
                yield source, value, keeper


def _passed_as(context: Context, source: Source, small: cst.CSTNode, keeper: str) -> str:
    """The last name of what all calls pass, also by ``partial``, where ``keeper`` is a parameter."""
    function = source.enclosing(small, cst.FunctionDef)
    if function is None or keeper not in parameters(function):
        return keeper
    given = [arg.value for _, _, arg in passing(context, source, function, keeper)]
    at = parameters(function).index(keeper) + 1
    for call in source.calls_of("functools.partial"):
        if len(call.args) > at and last_name(call.args[0].value) == function.name.value:
            given.append(call.args[at].value)
    names = {last_name(one) for one in given}
    return names.pop() if len(names) == 1 else keeper


def joined_for_good(
    context: Context, longer: Iterable[LineCost]
) -> Iterator[tuple[Source, cst.BaseExpression, str]]:
    """The same for a tensor that a training step replaces by a longer one on one of the lines ``longer``:
    ``self.keys = torch.cat([fresh, self.keys])``."""
    if not any(cost.backward_ms for cost in context.profile.lines):
        return  # what a generated text looks back at gets longer, too
    for cost in longer:
        source = context.source(cost.file)
        statement = source.statement_at(cost.line)
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            kept = added_by(source, small) if isinstance(small, cst.Assign) else ()
            for keeper, value in kept:
                if not _bounded(context, keeper, source, small):
                    yield source, value, keeper


def _bounded(
    context: Context, keeper: str, here: Source, growing: cst.BaseSmallStatement, *, epochs: bool = False
) -> bool:
    """Whether what has that last name may get shorter, or not longer than some number; ``growing`` is the
    statement that makes it longer. ``epochs``: other than by beginning again, which not each step does."""
    first = next((one for one in here.nodes(cst.Name, within=growing) if one.value == keeper), None)
    attribute = first is not None and not here.is_value(first)
    scope = None if first is None or attribute else _scope(here, first)
    values = []
    for source in context.sources():
        if any(keeper in names_read(source, gone) for gone in source.nodes(cst.Del)):
            return True
        if any(
            is_method(call, *EMPTIES, "remove") and last_name(receiver(call)) == keeper
            for call in source.nodes(cst.Call)
            if not (epochs and is_method(call, "clear") and not _each_step(context, source, call))
        ):
            return True
        given = [
            (target, value)
            for target, value in assignments(source)
            if last_name(target) == keeper and not (attribute and _is_local(source, target))
            if source.enclosing(target, cst.Assign) is not growing
            if scope is None or _scope_around(source, target) is scope
            if last_name(source.returned(value)) != keeper  # the same, from the function that made it
        ]
        if any(isinstance(target, cst.Subscript) for target, _ in given):
            return True
        values += [(source, value) for _, value in given]
    if epochs:
        return not values or any(
            not _is_empty(source, value) or _each_step(context, source, value) for source, value in values
        )
    if len(values) != 1:
        return True
    source, value = values[0]
    again = _each_step(context, source, value) or _made_often(context, source, value)
    return "maxlen" in source.code(value) or again


def _scope(source: Source, name: cst.Name) -> cst.CSTNode | None:
    """The function, or the file, that has a plain ``name``: what others call so is something else. None where
    the text does not tell: a parameter, or a name that another function may bind."""
    declared: list[cst.Global | cst.Nonlocal] = [*source.nodes(cst.Global), *source.nodes(cst.Nonlocal)]
    if any(item.name.value == name.value for one in declared for item in one.names):
        return None
    around = _scope_around(source, name)
    bound = {_scope_around(source, one) for one in source.bindings(name.value)}
    given = isinstance(around, cst.FunctionDef) and name.value in parameters(around)
    found = around if around in bound else source.module
    return found if found in bound and not given else None


def _scope_around(source: Source, node: cst.CSTNode) -> cst.CSTNode:
    return source.enclosing(node, cst.FunctionDef) or source.module


def _each_step(context: Context, source: Source, node: cst.CSTNode) -> bool:
    cost = context.cost(source.path, source.line(node))
    return cost is not None and cost.calls >= EACH_STEP


def _is_empty(source: Source, value: cst.BaseExpression) -> bool:
    """Whether it is a new list or the like with nothing in it, and without a largest length."""
    if isinstance(value, (cst.List, cst.Dict)):
        return not value.elements
    return isinstance(value, cst.Call) and called_name(value) in CONTAINERS and not value.args


def _is_local(source: Source, target: cst.BaseExpression) -> bool:
    """Whether a target is a name of a function or a file, which is no attribute that has the same name."""
    return isinstance(target, cst.Name) and not isinstance(
        source.enclosing(target, cst.FunctionDef, cst.ClassDef), cst.ClassDef
    )


def _made_often(context: Context, source: Source, value: cst.CSTNode) -> bool:
    """Whether the function or class around ``value`` is called in a loop, each time with a new one."""
    function, owner = source.enclosing(value, cst.FunctionDef), source.enclosing(value, cst.ClassDef)
    around = owner if function is None or function.name.value == "__init__" else function
    name = around.name.value if around is not None else ""
    return bool(source.loops(value)) or any(
        called_name(call) == name
        and (where.loops(call) or where.enclosing(call, cst.ListComp, cst.GeneratorExp))
        for where, call in (context.calls() if name else ())
    )
