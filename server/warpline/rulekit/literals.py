"""The place where a name gets a literal, in whatever way it is written, in the user's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.source import NOT_LITERAL, Source


def written_as(
    context: Context, values: Iterable[tuple[str, object]]
) -> tuple[Source, cst.BaseExpression] | None:
    """The only place where one of the names gets the literal beside it; None where there are several.

    A name may be ``owner.name``: an attribute of an object that is called so.
    """
    wanted = list(values)
    found = [
        (source, value)
        for source in (context.sources() if wanted else ())
        for name, value in _given(source)
        if any(name == one and source.literal(value) == literal for one, literal in wanted)
    ]
    return found[0] if len(found) == 1 else None


def _given(source: Source) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Names with the literals that they get: by keyword, in a dict, as an attribute, a variable or a
    default."""
    for arg in source.nodes(cst.Arg):
        if arg.keyword is not None:
            yield from _pair(source, arg.keyword, arg.value)
    for entry in source.nodes(cst.DictElement):
        yield from _pair(source, entry.key, entry.value)
    for param in source.nodes(cst.Param):
        yield from _pair(source, param.name, param.default)
    for declared in source.nodes(cst.AnnAssign):
        value = declared.value
        if isinstance(value, cst.Call) and (default := source.argument(value, "default")) is not None:
            value = default.value
        yield from _pair(source, declared.target, value)
    for assign in source.nodes(cst.Assign):
        for one in assign.targets:
            yield from _pair(source, one.target, assign.value)


def _pair(
    source: Source, name: cst.CSTNode, value: cst.BaseExpression | None
) -> Iterator[tuple[str, cst.BaseExpression]]:
    if isinstance(name, cst.Subscript) and len(name.slice) == 1:
        index = name.slice[0].slice
        name = index.value if isinstance(index, cst.Index) else name
    owner: cst.BaseExpression | None = None
    if isinstance(name, cst.Attribute):
        owner, name = name.value, name.attr
        owner = owner.attr if isinstance(owner, cst.Attribute) else owner
    word = name.value if isinstance(name, cst.Name) else source.literal(name)
    if value is not None and isinstance(word, str) and source.literal(value) is not NOT_LITERAL:
        yield word, value
        if isinstance(owner, cst.Name):
            yield f"{owner.value}.{word}", value
