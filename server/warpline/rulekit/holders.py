"""Where the value of an argument is written, as the run recorded it: the place to edit, and its
description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.options import switches
from warpline.syntax.edits import Refused
from warpline.syntax.source import NOT_LITERAL, Source, is_method
from warpline.wire.births import Argument, Holder
from warpline.wire.run import Site

_EXPRESSIONS = (
    cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString, cst.Name, cst.UnaryOperation, cst.Tuple,
    cst.List,
)  # fmt: skip
_LITERALS = ("call", "default", "variable", "entry", "field", "option")


def argument(site: Site, name: str) -> Argument | None:
    """What the run recorded of an argument; None in runs from before it was, or where it is not known."""
    return next((found for found in site.arguments if found.name == name), None)


def holder(site: Site, name: str) -> Holder | None:
    """The place that holds the value of an argument that was passed; None where it is not known."""
    found = argument(site, name)
    return found.holder if found is not None and found.passed else None


def words(holder: Holder) -> str:
    """What holds the value, for a message; "" for the call itself."""
    file, name = Path(holder.file).name, f"`{holder.name}`" if holder.name else "an expression"
    return {
        "default": f"the default of {name}",
        "variable": name,
        "entry": f"the entry {name}",
        "text": f"the entry {name}",
        "field": f"the field {name}",
        "option": f"the option {name}",
        "command line": f"{name} on the command line",
        "file": f"{name} in {file}",
        "environment": f"the environment variable {name}",
        "computed": "an expression there",
    }.get(holder.kind, "")


def by_hand(holder: Holder, name: str) -> str:
    """Why no edit of ``holder`` is written, and what to do instead; "" where one may be."""
    if holder.kind == "command line":
        return f"the command line passes `{holder.name}`: change it there"
    if holder.kind == "file":
        return f"change `{holder.name}` in {Path(holder.file).name} by hand"
    if holder.kind == "environment":
        return f"`{name}` comes from the environment variable `{holder.name}`: set it there"
    if holder.kind == "computed":
        return f"`{name}` is not a plain number on this line: change it by hand"
    return ""


def literal_at(context: Context, holder: Holder, value: object) -> tuple[Source, cst.BaseExpression]:
    """The expression that holds the value, to put another literal there. Raises Refused."""
    source = context.source(holder.file)
    if not source.text:
        raise Refused(f"the value is in {Path(holder.file).name}, which cannot be read")
    if holder.kind == "text":
        raise Refused(f"change `{holder.name}` in that text by hand")
    near = [
        node
        for node in source.at(holder.line, *_EXPRESSIONS)
        if source.line(node) == holder.line and source.literal(node) is not NOT_LITERAL
    ]
    exact = [
        node
        for node in near
        # Python counts the bracket of a tuple, LibCST does not.
        if source.span(node)[0][1] - (isinstance(node, cst.Tuple) and len(node.lpar)) == holder.column
    ]
    same = [
        node for node in near if source.literal(node) == value and type(source.literal(node)) is type(value)
    ]
    chosen = exact[:1] or (same if len(same) == 1 else [])
    if holder.kind not in _LITERALS or not chosen:
        raise Refused(f"the value is no longer in {Path(holder.file).name}")
    return source, chosen[0]


def in_text_at(
    context: Context, holder: Holder, value: object, code: str
) -> tuple[Source, cst.BaseExpression, str]:
    """The string that has the value in it as an entry, and its text with ``code`` instead. Only whole numbers
    are written in the same way whatever reads them. Raises Refused."""
    source, old = context.source(holder.file), str(value)
    if not source.text or holder.line > len(source.lines):
        raise Refused(f"the value is in {Path(holder.file).name}, which cannot be read")
    if type(value) is not int or not code.isdigit():
        raise Refused(f"change `{holder.name}` in that text by hand")
    begin = (holder.line, holder.column)
    for node in source.at(holder.line, cst.SimpleString):
        start, end = source.span(node)
        after = (holder.line, holder.column + len(old))
        if (
            start < begin
            and after < end
            and re.match(rf"{old}(?![\w.])", source.lines[holder.line - 1][begin[1] :])
        ):
            return source, node, source.slice(start, begin) + code + source.slice(after, end)
    raise Refused(f"the value is no longer in {Path(holder.file).name}")


def switch_at(context: Context, holder: Holder) -> tuple[Source, cst.Call] | None:
    """The option that holds the value because it is not passed, and has no default: it can be given one."""
    source = context.source(holder.file)
    found = source.calls(holder.line, "add_argument") if holder.kind == "option" else []
    return next(((source, call) for call in found if switches(source, call) is not None), None)


def beside(source: Source, node: cst.BaseExpression) -> cst.Dict | cst.Call | None:
    """The dict display, or the call's keywords, that hold ``node``: another entry can be put there."""
    parent = source.parent(node)
    if isinstance(parent, cst.DictElement):
        outer = source.parent(parent)
        return outer if isinstance(outer, cst.Dict) else None
    if isinstance(parent, cst.Arg) and parent.keyword is not None:
        call = source.parent(parent)
        told = isinstance(call, cst.Call) and source.is_named(
            call.func, "dict", "DataLoader", "partial", "update"
        )
        return call if told and isinstance(call, cst.Call) else None
    return None


def keys_of(source: Source, display: cst.CSTNode | None) -> list[object]:
    """The keys of a dict display or of a call's keywords, of ``partial`` those behind the function; None for
    one that cannot be read."""
    if isinstance(display, cst.Dict):
        keys = [getattr(one, "key", None) for one in display.elements]
        return [source.literal(key) if isinstance(key, cst.CSTNode) else None for key in keys]
    if isinstance(display, cst.Call):
        given = display.args[int(source.is_named(display.func, "partial")) :]
        return [one.keyword.value if one.keyword is not None else None for one in given]
    return []


def lacking(
    context: Context, site: Site, call: cst.Call, *names: str
) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The mapping that the call unpacks, or the ``partial`` that it calls, where nothing passes any of
    ``names``: the one whose entries are all that was recorded of the call beside what it names itself, but
    for those that are taken out before. None where that is unknown."""
    source = context.source(site.file)
    absent = [argument(site, name) for name in names]
    unpacked = len(source.unpacked(call))
    if unpacked > 1 or any(one is None or one.passed for one in absent):
        return None
    named = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    by_place = sum(arg.keyword is None and not arg.star for arg in call.args)
    given = {one.name: None for one in site.arguments[by_place:] if one.passed and one.name not in named}
    displays = {name: display_of(context, site, name) for name in given}
    if any(arg.star == "*" for arg in call.args):  # what it passes comes first
        for name in takewhile(lambda one: displays[one] is None, given):
            del displays[name]
    first = next(iter(displays.values()), None)
    if first is None or any(one is None or one[1] is not first[1] for one in displays.values()):
        return None
    bound = isinstance(first[1], cst.Call) and first[0].is_named(first[1].func, "partial")
    if bound == bool(unpacked):
        return None
    keys, taken = keys_of(*first), _taken_out(source, call)
    return first if len(keys) == len(set(keys)) and set(keys) - taken == displays.keys() else None


def _taken_out(source: Source, call: cst.Call) -> set[object]:
    """Keys that the mapping which ``call`` unpacks loses in the same function: ``spec.pop("type")``, or
    ``{key: value for key, value in spec.items() if key != "type"}``."""
    found: set[object] = set()
    for value in source.unpacked(call):
        around, code = source.scope(call), source.code(value)
        for one in source.nodes(cst.Call, within=around):
            if is_method(one, "pop") and one.args and source.code(one).startswith(f"{code}.pop("):
                found.add(source.literal(one.args[0].value))
        for made in (value, *source.assigned(code, within=around)):
            if isinstance(made, cst.DictComp) and is_method(made.for_in.iter, "items"):
                tests = source.nodes(cst.ComparisonTarget, within=made)
                found.update(
                    source.literal(one.comparator) for one in tests if isinstance(one.operator, cst.NotEqual)
                )
    return found


def made_with(context: Context, kind: str, display: cst.CSTNode) -> Iterator[Site]:
    """Where objects of ``kind`` get some of their arguments from that mapping."""
    for site in context.sites(kind):
        held = (display_of(context, site, one.name) for one in site.arguments if one.passed)
        if any(one is not None and one[1] is display for one in held):
            yield site


def display_of(context: Context, site: Site, name: str) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The dict display, or the call of ``dict`` or ``partial``, in which the run recorded the value of an
    argument."""
    found, held = argument(site, name), holder(site, name)
    if found is None or held is None or held.kind != "entry":
        return None
    try:
        where, node = literal_at(context, held, found.value)
    except Refused:
        return None
    outer = beside(where, node)
    if isinstance(outer, cst.Call) and not where.is_named(outer.func, "dict", "partial"):
        return None
    return (where, outer) if outer is not None else None
