"""What is put into a dict, a tuple or an object, followed through functions to where a part of it is read."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.kept_statements import EACH_STEP
from warpline.rulekit.origins import field_names, parameters
from warpline.syntax.source import NOT_LITERAL, Source, called_name, is_method, methods, receiver, taken

#: Names, calls and parameters that are followed, one after the other. Chosen, not fitted.
_FAR = 8
_Part = tuple[Source, cst.BaseExpression]
_HOLDERS = ("dict", "OrderedDict", "SimpleNamespace", "Namespace")
#: Its key, place or name, and what stands there.
_Entry = tuple[object, _Part]


def entries(context: Context, source: Source, value: cst.BaseExpression) -> list[_Part]:
    """The expressions that ``value`` may be, where it is an entry of something whose making is in the text:
    ``metrics[key]``, ``out.loss``, a name of ``loss, metrics = step(x)`` or of a loop over ``items()``. Empty
    for all else."""
    return list(dict.fromkeys(_entries(context, source, value, _FAR)))


def origins_of(context: Context, source: Source, value: cst.BaseExpression, left: int = _FAR) -> list[_Part]:
    """The same, also through parameters and entries of entries; ``value`` itself where nothing leads on."""
    found = list(_entries(context, source, value, left)) or list(_passed(context, source, value, left))
    if not found or left <= 0:
        return [(source, value)]
    parts = [part for other, one in found for part in origins_of(context, other, one, left - 1)]
    return list(dict.fromkeys(parts))


def held(context: Context, source: Source, value: cst.BaseExpression) -> list[_Part]:
    """What ``value`` was made of, where it is a whole dict, tuple or object whose making is in the text."""
    return list(dict.fromkeys(part for _, part in _table(context, source, value, _FAR)))


def _entries(context: Context, source: Source, value: cst.BaseExpression, left: int) -> Iterator[_Part]:
    if left <= 0:
        return
    if isinstance(value, cst.Subscript) and len(value.slice) == 1:
        index = value.slice[0].slice
        key = source.literal(index.value) if isinstance(index, cst.Index) else NOT_LITERAL
        yield from _under(context, source, value.value, key, left)
    elif isinstance(value, cst.Attribute):
        yield from _under(context, source, value.value, value.attr.value, left)
    elif isinstance(value, cst.Name):
        for whole, key in _unpacked(source, value):
            yield from _under(context, source, whole, key, left)


def _under(
    context: Context, source: Source, whole: cst.BaseExpression, key: object, left: int
) -> Iterator[_Part]:
    """What ``whole`` has under ``key``, under any where that is no literal."""
    for own, part in _table(context, source, whole, left - 1):
        if key is NOT_LITERAL or own == key:
            yield part


def _unpacked(source: Source, name: cst.Name) -> Iterator[tuple[cst.BaseExpression, object]]:
    """What a name is an entry of, and which one (any: NOT_LITERAL): the second of ``loss, metrics = …``, and
    the value of a loop over a dict or a list."""
    scope = source.scope(name)
    for assign in source.nodes(cst.Assign, within=scope):
        for target in (one.target for one in assign.targets):
            if isinstance(target, (cst.Tuple, cst.List)) and not isinstance(assign.value, cst.Tuple):
                for at, one in enumerate(target.elements):
                    if _is(one.value, name) and source.scope(assign) is scope:
                        yield assign.value, at
    for loop in source.nodes(cst.For, within=scope):
        for part, over in taken(loop.target, loop.iter) if source.inside(name, loop.body) else ():
            inner = receiver(over)
            pair = isinstance(part, cst.Tuple) and len(part.elements) == 2 and is_method(over, "items")
            last = part.elements[1].value if pair and isinstance(part, cst.Tuple) else part
            if _is(last, name):
                named = is_method(over, "items", "values") and inner is not None
                yield (inner if named and inner is not None else over), NOT_LITERAL


def _is(node: cst.CSTNode, name: cst.Name) -> bool:
    return isinstance(node, cst.Name) and node.value == name.value


def _table(context: Context, source: Source, whole: cst.BaseExpression, left: int) -> Iterator[_Entry]:
    """All that a dict, a tuple or an object was made of, also entry by entry."""
    if left <= 0:
        return
    if isinstance(whole, (cst.Tuple, cst.List)):
        yield from ((at, (source, one.value)) for at, one in enumerate(whole.elements))
    elif isinstance(whole, cst.Dict):
        yield from ((key, (source, one)) for key, one in source.entries(whole).items())
    elif isinstance(whole, cst.Call):
        yield from _made_by(context, source, whole, left)
    elif isinstance(whole, cst.Name):
        scope, rest = source.scope(whole), list[_Part]()
        for assign in source.nodes(cst.Assign, within=scope):
            for target in (one.target for one in assign.targets):
                if _is(target, whole):
                    rest.append((source, assign.value))
                elif isinstance(target, cst.Subscript) and _is(target.value, whole):
                    index = target.slice[0].slice
                    key = source.literal(index.value) if isinstance(index, cst.Index) else NOT_LITERAL
                    yield key, (source, assign.value)
        rest += [*_entries(context, source, whole, left), *_passed(context, source, whole, left)]
        for other, one in rest:
            yield from _table(context, other, one, left - 1)
    else:
        for other, one in _entries(context, source, whole, left):
            yield from _table(context, other, one, left - 1)


def _made_by(context: Context, source: Source, call: cst.Call, left: int) -> Iterator[_Entry]:
    """What a function of the user's returns, or what an object or a dict is made with."""
    for other, function in functions_called(context, source, call):
        for back in other.nodes(cst.Return, within=function):
            if back.value is not None and other.enclosing(back, cst.FunctionDef) is function:
                yield from _table(context, other, back.value, left - 1)
    owners = [
        (other, owner)
        for other, owner in context.classes(called_name(call))
        if called_name(call) and "__init__" not in methods(owner)
    ]
    if owners or source.is_named(call.func, *_HOLDERS):
        fields = [one for other, owner in owners for one in field_names(other, owner)]
        for at, arg in enumerate(call.args):
            known = fields[at] if at < len(fields) else NOT_LITERAL
            yield arg.keyword.value if arg.keyword is not None else known, (source, arg.value)


def functions_called(
    context: Context, source: Source, call: cst.Call
) -> list[tuple[Source, cst.FunctionDef]]:
    """The functions of the user's that the line was seen to call: that one, or a module's ``forward``. By its
    name where nothing was seen, as beside compiled code."""
    cost, found = context.cost(source.path, source.line(call)), list[tuple[Source, cst.FunctionDef]]()
    if cost is None or not cost.called:
        return [(other, one) for other in context.sources() for one in other.functions(called_name(call))]
    for names in ((called_name(call),), ("forward", "__call__")):
        for file, name in cost.called if not found else ():
            owner, _, last = name.rpartition(".")
            if last not in names:
                continue
            other = context.source(file)
            for one in other.functions(last):
                around = other.enclosing(one, cst.ClassDef)
                if around is None or around.name.value == owner.rpartition(".")[2]:
                    found.append((other, one))
    return found


def _passed(context: Context, source: Source, value: cst.BaseExpression, left: int) -> Iterator[_Part]:
    """What each step's calls pass, where ``value`` is a parameter."""
    function = source.enclosing(value, cst.FunctionDef)
    if left <= 0 or function is None or not isinstance(value, cst.Name):
        return
    names = parameters(function)
    for cost in context.profile.lines if value.value in names else ():
        other = context.source(cost.file)
        for call in other.calls(cost.line, function.name.value) if cost.calls >= EACH_STEP else ():
            given = other.argument(call, value.value, names.index(value.value))
            if given is not None:
                yield other, given.value
