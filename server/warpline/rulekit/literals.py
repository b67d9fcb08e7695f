"""The place where something that a call is made of gets a literal, in whatever way it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from warpline.rulekit.origins import entry_read
from warpline.syntax.source import NOT_LITERAL, Source, is_method, receiver

#: A name, and the function that it is known in (None: the file).
_Known = tuple[str, cst.FunctionDef | None]


def written_for(
    source: Source, call: cst.Call, values: Iterable[tuple[str, object]]
) -> cst.BaseExpression | None:
    """The only place in the file that gives one of the names the literal beside it, on an object that
    ``call`` is made of: by its own names, and by what each of them is assigned once. None where there are
    several, or where the object may be another one.

    A name may be ``owner.name``: an attribute of an object that is called so.
    """
    wanted = list(values)
    known = _made_of(source, call) if wanted else set()
    found = [
        value
        for name, value in (_given(source) if wanted else ())
        if any(name == one and source.literal(value) == literal for one, literal in wanted)
        and (source.inside(value, call) or _holder(source, value) in known)
        and source.line(value) <= source.span(call)[1][0]
    ]
    return found[0] if len(found) == 1 else None


def _made_of(source: Source, call: cst.Call) -> set[_Known]:
    known: set[_Known] = set()
    waiting: list[tuple[cst.CSTNode, cst.FunctionDef | None]] = [
        (call, source.enclosing(call, cst.FunctionDef))
    ]
    while waiting:
        node, scope = waiting.pop()
        for name in {one.value for one in source.nodes(cst.Name, within=node) if source.is_value(one)}:
            where = scope
            assigned = _assigned(source, name, scope)
            if not assigned and scope is not None and name not in _parameters(source, scope):
                where, assigned = None, _assigned(source, name, None)
            if len(assigned) > 1 or (name, where) in known:
                continue
            known.add((name, where))
            waiting += [(value, where) for value in assigned]
    return known


def _assigned(source: Source, name: str, scope: cst.FunctionDef | None) -> list[cst.BaseExpression]:
    given = source.assigned(name, within=scope)
    return [one for one in given if source.enclosing(one, cst.FunctionDef) is scope]


def _parameters(source: Source, scope: cst.FunctionDef) -> set[str]:
    return {param.name.value for param in source.nodes(cst.Param, within=scope.params)}


def _holder(source: Source, value: cst.BaseExpression) -> _Known | None:
    """The name whose object the statement around ``value`` makes or changes."""
    assign, node = source.enclosing(value, cst.Assign), _updated(source, value)
    if assign is not None:
        node = [one.target for one in assign.targets][-1]
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    scope = source.enclosing(value, cst.FunctionDef)
    return (node.value, scope) if isinstance(node, cst.Name) else None


def _updated(source: Source, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The object whose ``update`` gets ``value``, in a statement of its own."""
    statement = source.enclosing(value, cst.Expr)
    call = statement.value if statement is not None else None
    return receiver(call) if is_method(call, "update") else None


def _given(source: Source) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Names with the literals that they get: by keyword, in a dict, as an attribute or a variable."""
    for arg in source.nodes(cst.Arg):
        if arg.keyword is not None:
            yield from _pair(source, arg.keyword, arg.value)
    for entry in source.nodes(cst.DictElement):
        yield from _pair(source, entry.key, entry.value)
    for assign in source.nodes(cst.Assign):
        for one in assign.targets:
            yield from _pair(source, one.target, assign.value)


def _pair(
    source: Source, name: cst.CSTNode, value: cst.BaseExpression | None
) -> Iterator[tuple[str, cst.BaseExpression]]:
    if isinstance(name, cst.Subscript) and (read := entry_read(name)) is not None:
        name = read[1]
    owner: cst.BaseExpression | None = None
    if isinstance(name, cst.Attribute):
        owner, name = name.value, name.attr
        owner = owner.attr if isinstance(owner, cst.Attribute) else owner
    word = name.value if isinstance(name, cst.Name) else source.literal(name)
    if value is not None and isinstance(word, str) and source.literal(value) is not NOT_LITERAL:
        yield word, value
        if isinstance(owner, cst.Name):
            yield f"{owner.value}.{word}", value


def is_switched_on(sources: Iterable[Source], name: str) -> bool:
    """Whether the files as they are now give ``name`` the value True: an argument, an entry or a variable."""
    return any(
        given == name and source.literal(value) is True
        for source in sources
        for given, value in _given(source)
    )
