"""Where a value comes from: a constant, a config dict, a dataclass field, a command-line default.

``DataLoader(data, **cfg)`` with ``num_workers`` in a dict of another module is edited there, and the
finding says so. Only what can be followed without doubt is followed: one assignment, one default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.options import adding, defaults, firsts, of_field, options_passed, spellings, switches
from warpline.syntax.source import NOT_LITERAL, Source, is_method, receiver

_SCOPES = (cst.FunctionDef, cst.ClassDef)
#: Whether an expression is the value itself, and not another name of it.
Ends = Callable[[Source, cst.BaseExpression], bool]
_DEPTH = 6  # assignments followed before giving up
#: What makes a mapping of an object's fields.
_AS_MAPPING = ("asdict", "_asdict", "vars", "model_dump", "to_dict")
#: Their functions are none of the script's.
LIBRARIES = sys.stdlib_module_names | {"torch", "numpy"}


@dataclass(frozen=True, slots=True)
class Origin:
    """``node`` is the expression that holds the value, in ``source``; ``words`` names it for a message.

    ``kind``: "literal" (of the expression itself), "constant", "dict", "field", "argument" (the
    default of a command-line option, which the command line may override), "unknown".
    """

    kind: Literal["literal", "constant", "dict", "field", "argument", "unknown"]
    source: Source
    node: cst.BaseExpression
    words: str

    @property
    def place(self) -> tuple[str, int]:
        """The file that holds the value, and the line of the value in it."""
        return self.source.place(self.node)

    @property
    def editable(self) -> bool:
        """Whether another literal may be written at ``node``."""
        return self.kind != "unknown" and self.source.literal(self.node) is not NOT_LITERAL


def is_literal(source: Source, node: cst.BaseExpression) -> bool:
    """Whether the value is written there as a literal."""
    return source.literal(node) is not NOT_LITERAL


def origin(
    context: Context,
    source: Source,
    expression: cst.BaseExpression,
    depth: int = _DEPTH,
    ends: Ends = is_literal,
) -> Origin:
    """Follow ``expression`` to the literal that it stands for, or to what ``ends`` says is the value."""
    unknown = Origin("unknown", source, expression, f"`{source.code(expression)}`")
    if ends(source, expression):
        return Origin("literal", source, expression, f"`{source.code(expression)}`")
    if depth == 0:
        return unknown
    if isinstance(expression, (cst.Name, cst.Attribute)):
        assigned = _name(context, source, expression, depth, ends)
        if assigned is not None or isinstance(expression, cst.Name):
            return assigned or unknown
    read = entry_read(expression)
    key = source.literal(read[1]) if read is not None else None
    if read is not None and isinstance(key, str):
        found = unpacked_origin(context, source, read[0], key, depth - 1, ends)
        found = found or _only(_dict_values(context, key)) or _only(_options(context, key))
        return found or _only(_set_values(context, key)) or unknown
    if isinstance(expression, cst.Attribute):
        name = expression.attr.value
        values = _own_values(context, source, expression) if is_self(expression.value) else []
        found = origin(context, *values[0], depth - 1, ends) if len(values) == 1 else None
        if not is_self(expression.value):
            found = _set_here(context, source, expression, depth, ends)
        found = found or _only(_options(context, name)) or _only(fields(context, name))
        return found or _given_once(context, name, depth, ends) or unknown
    return unknown


def argument_origin(
    context: Context, source: Source, call: cst.Call, name: str, position: int | None = None
) -> Origin | None:
    """Where the value of an argument comes from, also in a mapping that the call unpacks; None where the call
    does not pass it."""
    given = source.argument(call, name, position)
    if given is not None:
        return origin(context, source, given.value)
    found = (unpacked_origin(context, source, value, name) for value in source.unpacked(call))
    return next((one for one in found if one is not None), None)


def unpacked_origin(
    context: Context,
    source: Source,
    value: cst.BaseExpression,
    key: str,
    depth: int = _DEPTH,
    ends: Ends = is_literal,
) -> Origin | None:
    """Where ``key`` of a mapping passed as ``**value`` comes from; None when it is not in it."""
    if isinstance(value, (cst.Name, cst.Attribute)) and depth > 0:
        for where, node in _given(context, source, value):
            found = unpacked_origin(context, where, node, key, depth - 1, ends)
            if found is not None:
                return Origin(found.kind, found.source, found.node, f'`{source.code(value)}["{key}"]`')
        return None
    entry = _entry(source, value, key)
    if entry is not None:
        if ends(source, entry):
            return Origin("dict", source, entry, f"the entry `{key}`")
        return origin(context, source, entry, max(depth - 1, 0), ends)
    if isinstance(value, cst.Subscript) and depth > 0:
        return _only(_dict_values(context, key))
    if isinstance(value, cst.Call) and source.is_named(value.func, *_AS_MAPPING):
        return _only(fields(context, key))
    back = source.returned(value) if depth > 0 else None
    return unpacked_origin(context, source, back, key, depth - 1, ends) if back is not None else None


def written(context: Context, key: str) -> Origin | None:
    """The only value that the files give ``key``: in a mapping, or as an argument by keyword."""
    found = [*_dict_values(context, key), *_set_values(context, key)]
    for source, call in context.calls():
        passed = source.argument(call, key)
        if passed is not None and not source.is_named(call.func, "dict"):
            found.append(Origin("argument", source, passed.value, f"the argument `{key}`"))
    return _only(iter(found))


def mapping(
    context: Context, source: Source, value: cst.BaseExpression
) -> tuple[Source, cst.Dict | cst.Call] | None:
    """The dict display or ``dict(…)`` call that a ``**value`` stands for, to add a key to."""
    if isinstance(value, cst.Dict) or (isinstance(value, cst.Call) and source.name(value.func) == "dict"):
        return source, value
    named = isinstance(value, (cst.Name, cst.Attribute))
    found = list(_given(context, source, value)) if named else []
    return mapping(context, *found[0]) if len(found) == 1 else None


def _given(
    context: Context, source: Source, value: cst.BaseExpression
) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """The same of a mapping, which may be a method's own object's: ``**self.settings``."""
    if isinstance(value, cst.Attribute) and is_self(value.value):
        return iter(_own_values(context, source, value))
    return _assigned(context, source, value)


def _name(
    context: Context, source: Source, name: cst.Name | cst.Attribute, depth: int, ends: Ends
) -> Origin | None:
    inner: Origin | None = None
    for where, node in _assigned(context, source, name):
        found = origin(context, where, node, depth - 1, ends)
        if found.kind == "unknown" or (inner is not None and inner.node is not found.node):
            return None
        inner = found
    if inner is not None and inner.kind == "literal":
        return Origin("constant", inner.source, inner.node, f"`{source.code(name)}`")
    return inner


def _assigned(
    context: Context, source: Source, name: cst.BaseExpression
) -> Iterator[tuple[Source, cst.BaseExpression]]:
    """The values assigned to ``name`` in the innermost scope that assigns it; imports are followed,
    also for ``module.name``."""
    if isinstance(name, cst.Name):
        functions = (node for node in source.ancestors(name) if isinstance(node, cst.FunctionDef))
        for scope in (*functions, source.module):
            values = [(source, value) for value in _values(source, scope, name.value)]
            if isinstance(scope, cst.FunctionDef):
                # `if size is None: size = …` gives a parameter what its default leaves open.
                given = _defaults(context, source, scope, name.value)
                values += [one for one in given if not values or one[0].code(one[1]) != "None"]
            if values:
                yield from values
                return
    module, _, wanted = source.name(name).rpartition(".")
    for one in [module] if module else _all_imported(source):
        other = module_source(context, source, one)
        values = (
            [(other, value) for value in _values(other, other.module, wanted)] if other is not None else []
        )
        if values:
            yield from values
            return


def _all_imported(source: Source) -> Iterator[str]:
    """The modules of ``from module import *``, the last one first: it is the one that counts."""
    for node in reversed(source.nodes(cst.ImportFrom)):
        if isinstance(node.names, cst.ImportStar) and node.module is not None:
            yield "." * len(node.relative) + source.code(node.module)


def assigned_values(
    context: Context, source: Source, node: cst.Name | cst.Attribute
) -> list[tuple[Source, cst.BaseExpression]]:
    """All that a name, or an attribute of a method's own object, is given. Nothing where it gets something
    in another way, too: from a loop, or from a call that gives several values."""
    if isinstance(node, cst.Attribute) and is_self(node.value):
        return _own_values(context, source, node)
    if isinstance(node, cst.Name):
        functions = [one for one in source.ancestors(node) if isinstance(one, cst.FunctionDef)]
        bound = [one for one in source.nodes(cst.Name) if one.value == node.value and source.binds(one)]
        scopes = {source.enclosing(one, cst.FunctionDef) for one in bound}
        scope = next((one for one in functions if one in scopes), None)
        here = [one for one in bound if source.enclosing(one, cst.FunctionDef) is scope]
        known = [target for target, _ in assignments(source, scope)]
        others = (source.parent(one) for one in here if one not in known)
        if not all(isinstance(one, (cst.Param, cst.ImportAlias)) for one in others):
            return []
    return [*_assigned(context, source, node)]


def only_value(
    context: Context, source: Source, node: cst.BaseExpression
) -> tuple[Source, cst.BaseExpression] | None:
    """The same of what is a name or an attribute, where it is one value."""
    given = assigned_values(context, source, node) if isinstance(node, (cst.Name, cst.Attribute)) else []
    return given[0] if len(given) == 1 else None


def _values(source: Source, scope: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    for target, value in assignments(source, scope):
        if isinstance(target, cst.Name) and target.value == name:
            owner = next((one for one in source.ancestors(target) if isinstance(one, _SCOPES)), source.module)
            if owner is scope:
                yield value


def assignments(
    source: Source, within: cst.CSTNode | None = None
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The targets of assignments with what each gets, those of a tuple one by one, without what a star
    unpacks; those with a type last."""
    for node in source.nodes(cst.Assign, within=within):
        for target in (one.target for one in node.targets):
            if isinstance(target, cst.Tuple) and isinstance(node.value, cst.Tuple):
                yield from _one_by_one(target.elements, node.value.elements)
            else:
                yield target, node.value
    for typed in source.nodes(cst.AnnAssign, within=within):
        if typed.value is not None:
            yield typed.target, typed.value


def _one_by_one(
    targets: Sequence[cst.BaseElement], values: Sequence[cst.BaseElement]
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    starred = [isinstance(one, cst.StarredElement) for one in (*targets, *values)]
    for entry, value in zip(targets, values, strict=False):
        if isinstance(entry, cst.StarredElement) or isinstance(value, cst.StarredElement):
            break
        yield entry.value, value.value
    for entry, value in zip(reversed(targets), reversed(values), strict=False) if any(starred) else ():
        if isinstance(entry, cst.StarredElement) or isinstance(value, cst.StarredElement):
            break
        yield entry.value, value.value


def _defaults(
    context: Context, source: Source, function: cst.FunctionDef, name: str
) -> list[tuple[Source, cst.BaseExpression]]:
    """What a parameter gets: from the calls that pass it, of the class where it is ``__init__``'s; else its
    default."""
    params = function.params
    param = next((p for p in (*params.params, *params.kwonly_params) if p.name.value == name), None)
    if param is None:
        return []
    calls = passing(context, source, function, name)
    passed = [(other, arg.value) for other, call, arg in calls if not call.lpar]
    return passed or ([(source, param.default)] if param.default is not None else [])


def passing(
    context: Context, source: Source, function: cst.FunctionDef, name: str
) -> list[tuple[Source, cst.Call, cst.Arg]]:
    """The calls that pass a parameter of ``function``, each with its file and the argument; calls of the
    class where it is ``__init__``'s. ``random.sample`` is no call of the script's own ``sample``."""
    order, called = parameters(function), called_as(source, function)
    position = order.index(name) if name in order else None
    return [
        (other, call, arg)
        for other, call in context.calls(called)
        if other.imported_from(call.func).partition(".")[0] not in LIBRARIES
        if (arg := other.argument(call, name, position)) is not None
    ]


def parameters(function: cst.FunctionDef) -> list[str]:
    """The names of the parameters that a call may pass by position, in their order."""
    return [one.name.value for one in function.params.params if one.name.value not in ("self", "cls")]


def parameter_of(function: cst.FunctionDef, arg: cst.Arg, call: cst.Call) -> str | None:
    """The parameter that a call of ``function`` gives ``arg`` to; None where that is not known."""
    order, at = parameters(function), call.args.index(arg)
    if arg.keyword is not None:
        named = (*order, *(one.name.value for one in function.params.kwonly_params))
        return arg.keyword.value if arg.keyword.value in named else None
    starred = any(one.star for one in call.args[: at + 1])
    return order[at] if at < len(order) and not starred else None


def called_as(source: Source, function: cst.FunctionDef) -> str:
    """The name that calls of ``function`` have: its class's where it is ``__init__``."""
    owner = source.enclosing(function, cst.ClassDef) if function.name.value == "__init__" else None
    return (owner or function).name.value


def module_source(context: Context, source: Source, module: str) -> Source | None:
    """The user's file that ``import module`` in ``source`` means, by its path."""
    tail = module.lstrip(".").replace(".", "/")
    endings = (f"/{tail}.py", f"/{tail}/__init__.py")
    found = [path for path in context.profile.sources if path.replace("\\", "/").endswith(endings)]
    near = source.path.replace("\\", "/").rpartition("/")[0]
    found.sort(key=lambda path: (not path.startswith(near), len(path)))
    return context.source(found[0]) if found else None


def _dict_values(context: Context, key: str) -> Iterator[Origin]:
    for source in context.sources():
        for node in (*source.nodes(cst.Dict), *source.calls_of("dict")):
            entry = _entry(source, node, key)
            if entry is not None:
                yield Origin("dict", source, entry, f"the entry `{key}`")


def _set_values(context: Context, key: str) -> Iterator[Origin]:
    """What ``config["key"] = value`` sets."""
    for source in context.sources():
        for target, value in assignments(source):
            read = entry_read(target)
            if read is not None and source.literal(read[1]) == key:
                yield Origin("dict", source, value, f"the entry `{key}`")


def _entry(source: Source, value: cst.BaseExpression, key: str) -> cst.BaseExpression | None:
    if isinstance(value, cst.Dict):
        return source.entries(value).get(key)
    if isinstance(value, cst.Call) and source.is_named(value.func, "dict", "SimpleNamespace", "Namespace"):
        found = source.argument(value, key)
        return found.value if found is not None else None
    return None


def _options(context: Context, name: str) -> Iterator[Origin]:
    """The default of an option, as of ``add_argument("--num-workers", default=0)``."""
    for source, default, words in defaults(context, name):
        yield Origin("argument", source, default, words)


def bare_switch(context: Context, name: str) -> Origin | None:
    """The only ``add_argument("--name", action="store_true")`` without a default, or of "store_false": its
    action; of the first where others of the parser have its ``dest``. No literal can be put there; the call
    takes a default (:func:`warpline.rulekit.flags.turned`)."""
    actions = ((source, switches(source, call)) for source, call in firsts(adding(context, name)))
    words = f"the option `--{name}`"
    return _only(Origin("argument", source, one, words) for source, one in actions if one is not None)


def overridden(context: Context, origin: Origin) -> str | None:
    """The word of the command line that gives an option, or a field that a parser fills, another value than
    its default; None for none."""
    names: set[str] = set()
    if origin.kind == "argument":
        names = spellings(context, origin.source, origin.node)
    elif origin.kind == "field":
        typed = origin.source.enclosing(origin.node, cst.AnnAssign)
        names = of_field(origin.source.code(typed.target)) if typed is not None else names
    return next((word for word in options_passed(context) if word in names), None)


def executes_text(source: Source) -> bool:
    """Whether a script runs other code as its own, which may give its names other values
    (``exec(open("configurator.py").read())``)."""
    return bool(source.calls_of("exec"))


def field_default(source: Source, value: cst.BaseExpression) -> cst.BaseExpression:
    """The default in ``field(default=…)``, that a dataclass's field gets; else ``value`` itself."""
    is_field = isinstance(value, cst.Call) and source.is_named(value.func, "field", "Field")
    given = source.argument(value, "default") if is_field and isinstance(value, cst.Call) else None
    return given.value if given is not None else value


def field_names(source: Source, owner: cst.ClassDef) -> list[str]:
    """The annotated fields of a class, in the order in which a dataclass takes them."""
    lines = (line.body for line in owner.body.body if isinstance(line, cst.SimpleStatementLine))
    return [source.code(one.target) for body in lines for one in body if isinstance(one, cst.AnnAssign)]


def fields(context: Context, name: str) -> Iterator[Origin]:
    """A field of a class body (dataclass or plain), or a keyword of a namespace."""
    for source in context.sources():
        for node in source.nodes(cst.ClassDef):
            for value in _values(source, node, name):
                yield Origin("field", source, field_default(source, value), f"`{node.name.value}.{name}`")
        for call in source.calls_of("SimpleNamespace", "Namespace"):
            entry = source.argument(call, name)
            if entry is not None:
                yield Origin("dict", source, entry.value, f"`{name}`")


def _own_values(
    context: Context, source: Source, node: cst.Attribute
) -> list[tuple[Source, cst.BaseExpression]]:
    """What the class of a method assigns to an attribute of its object; else the script's class that it
    inherits from."""
    owner, where, seen = source.enclosing(node, cst.ClassDef), source, set[str]()
    while owner is not None and owner.name.value not in seen:
        seen.add(owner.name.value)
        given = assignments(where, owner)
        own = [(one, value) for one, value in given if isinstance(one, cst.Attribute) and is_self(one.value)]
        named = [value for one, value in own if one.attr.value == node.attr.value]
        if found := [*_values(where, owner, node.attr.value), *named]:
            return [(where, value) for value in found]
        bases = {where.name(one.value).rpartition(".")[2] for one in owner.bases}
        above = [one for name in bases for one in context.classes(name)]
        where, owner = above[0] if len(above) == 1 else (where, None)
    return []


def _set_here(context: Context, source: Source, node: cst.Attribute, depth: int, ends: Ends) -> Origin | None:
    """The value that the same function assigns to ``args.name`` over its default, if it does so once."""
    values = source.values(source.code(node), source.scope(node))
    found = origin(context, source, values[0], depth - 1, ends) if len(values) == 1 else None
    return found if found is not None and found.kind != "unknown" else None


def _given_once(context: Context, name: str, depth: int, ends: Ends) -> Origin | None:
    """Where the value of an attribute comes from that one method in all files gives its object, as the
    ``__init__`` of a class of settings does, and nothing else gives any object."""
    given = [
        (source, target, value)
        for source in context.sources()
        for target, value in assignments(source)
        if isinstance(target, cst.Attribute) and target.attr.value == name
    ]
    if len(given) != 1 or not is_self(given[0][1].value):
        return None
    source, _, value = given[0]
    found = origin(context, source, value, depth - 1, ends)
    if found.kind == "literal":
        return Origin("field", source, found.node, f"`{name}`")
    return found if found.kind != "unknown" else None


def is_self(node: cst.BaseExpression) -> bool:
    """Whether it is the object, or the class, of a method."""
    return isinstance(node, cst.Name) and node.value in ("self", "cls")


def entry_read(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The mapping and the key of ``cfg["key"]``, ``cfg.get("key", …)`` or ``cfg.pop("key")``."""
    if isinstance(node, cst.Subscript):
        part = node.slice[0].slice
        return (node.value, part.value) if len(node.slice) == 1 and isinstance(part, cst.Index) else None
    held = receiver(node) if is_method(node, "get", "pop") else None
    return (held, node.args[0].value) if isinstance(node, cst.Call) and held and node.args else None


def table_read(
    context: Context, source: Source, node: cst.BaseExpression
) -> tuple[Source, cst.Dict, cst.BaseExpression] | None:
    """The table of the script's that ``TABLE[key]`` or ``TABLE.get(key, …)`` reads, and the key."""
    table, key = entry_read(node) or (node, node)
    where = source
    if table is not node and isinstance(table, (cst.Name, cst.Attribute)):
        where, table = only_value(context, source, table) or (source, node)
    return (where, table, key) if isinstance(table, cst.Dict) and table is not node else None


def _only(origins: Iterator[Origin]) -> Origin | None:
    """The only one, None when there are none or several."""
    first, second = next(origins, None), next(origins, None)
    return first if second is None else None
