"""Meters: small classes of the script's own that add up what they are given, to be told now and then."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.origins import parameter_of
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, is_method, methods, only_target
from warpline.text.lines import line_at

ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_IN_PLACE = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign)
#: A conversion of ``"%.3f" % value``, and those for which a tensor with one number is as good as that.
_CONVERSION = re.compile(r"%(?:\(\w*\))?[-+ #0]*[\d*]*(?:\.[\d*]*)?([a-zA-Z%])")
_REAL = "eEfFgG"
#: Conversions of ``"{!r}".format(value)``: a tensor's differs from that of a number.
_CONVERTED = re.compile(r"![rsa]\b")
#: Functions that show an object by its own methods.
_SHOW = ("str", "print", "repr")


@dataclass(slots=True)
class Meter:
    """What a class does with one parameter of its method ``update``.

    ``held``: attributes that it is in; ``giving``: methods and properties that return it; ``telling``: those
    that read it otherwise. They put it into text, in which a tensor of one number looks as the number does.
    """

    source: Source
    owner: cst.ClassDef
    update: str
    held: set[str] = field(default_factory=set)
    giving: set[str] = field(default_factory=set)
    telling: set[str] = field(default_factory=set)

    @property
    def methods(self) -> dict[str, cst.FunctionDef]:
        """Its methods by name."""
        return methods(self.owner)

    def is_property(self, name: str) -> bool:
        """Whether ``name`` is read without being called."""
        return bool(self.methods[name].decorators) if name in self.methods else True


@dataclass(frozen=True, slots=True)
class Read:
    """Where a meter is read. ``bare``: the expression that is the number itself, not a text with it."""

    node: cst.BaseExpression
    bare: bool


def made_once(
    context: Context, source: Source, name: cst.Name
) -> tuple[cst.CSTNode, Source, cst.ClassDef] | None:
    """The function, or module, whose name this is, and the script's class that each assignment there gives it
    an object of; None where it may be anything else."""
    scopes = [one for one in source.ancestors(name) if isinstance(one, (cst.FunctionDef, cst.Module))]
    for scope in scopes:
        bound = [one for one in source.uses(name.value, scope) if source.binds(one)]
        if not bound:
            continue
        found = {_class(context, source, source.given(one)) for one in bound}
        (made,) = found if len(found) == 1 else (None,)
        modes = any(source.is_named(one, "inference_mode") for one in source.nodes(cst.Name, cst.Attribute))
        if isinstance(scope, cst.Module) and modes:
            return None  # what was made in that mode cannot be added to outside of it
        return (scope, *made) if made is not None else None
    return None


def _class(
    context: Context, source: Source, made: cst.BaseExpression | None
) -> tuple[Source, cst.ClassDef] | None:
    """The script's own class that ``made`` is a call of, if nothing is derived from it or it from others."""
    if not isinstance(made, cst.Call):
        return None
    package, _, name = source.name(made.func).rpartition(".")
    found = [*context.classes(name)]
    derived = any(
        other.is_named(base.value, name) for other, owner in context.classes() for base in owner.bases
    )
    if len(found) != 1 or derived:
        return None
    where, owner = found[0]
    first = package.lstrip(".").partition(".")[0]
    if first and first not in Path(where.path).with_suffix("").parts:
        return None  # a library's, of the same name
    alone = all(where.code(base.value) == "object" for base in owner.bases)
    return found[0] if alone and not owner.keywords and not owner.decorators else None


def meter_of(
    source: Source, owner: cst.ClassDef, update: str, parameter: Callable[[cst.FunctionDef], str | None]
) -> Meter:
    """What ``owner`` does with a ``parameter`` of ``update``. Raises Refused if that is more than arithmetic,
    or if what it does elsewhere might tell a tensor from a number."""
    meter = Meter(source, owner, update)
    local = {name: set[str]() for name in meter.methods}
    refused = Refused(f"`{owner.name.value}` does more with it than arithmetic")
    given = parameter(meter.methods[update]) if update in meter.methods else None
    if given is None:
        raise refused
    local[update].add(given)
    _check_self(meter)
    while True:
        before = len(meter.held), len(meter.giving), sum(map(len, local.values()))
        aliased, others = set[str](), list[tuple[str, cst.BaseExpression]]()
        for name, function in meter.methods.items():
            for atom in _atoms(meter, function, local[name]):
                other = _follow(meter, function, atom, local[name], aliased)
                if other is not None:
                    others.append((name, other))
        if before == (len(meter.held), len(meter.giving), sum(map(len, local.values()))):
            break
    for name, node in others:
        if name == update or not (is_formatted(source, node) or _is_converted(source, node)):
            raise refused
        meter.telling.add(name)
    grown = {source.code(one.target): one.operator for one in source.nodes(cst.AugAssign, within=owner)}
    kept = [one for code, one in grown.items() if code.rpartition(".")[2] in meter.held]
    if update in meter.giving or aliased & {*grown} or not all(isinstance(one, _IN_PLACE) for one in kept):
        raise refused
    return meter


def _check_self(meter: Meter) -> None:
    """Raises Refused where a method hands on the object itself, or calls others to update it."""
    source = meter.source
    for name, function in meter.methods.items():
        decorators = [source.code(one.decorator) for one in function.decorators]
        me = _self(function)
        uses = [one for one in source.nodes(cst.Name, within=function) if one.value == me]
        for use in uses:
            above = source.parent(use)
            if isinstance(above, cst.Param):
                continue
            if not isinstance(above, cst.Attribute) or above.value is not use:
                raise Refused(f"`{meter.owner.name.value}` hands itself on")
            if above.attr.value == "__dict__":
                arg = source.parent(above)
                text = (
                    isinstance(arg, cst.Arg) and arg.star == "**" and is_method(source.parent(arg), "format")
                )
                if not text or name == meter.update:
                    raise Refused(f"`{meter.owner.name.value}` hands itself on")
                meter.telling.add(name)
            if name == meter.update and isinstance(source.parent(above), cst.Call):
                raise Refused(f"`{name}` calls other methods")
        if decorators not in ([], ["property"]) or not me:
            raise Refused(f"`{name}` is decorated")
    if _CONVERTED.search(source.code(meter.owner)):
        raise Refused(f"`{meter.owner.name.value}` shows what a value is")


def _self(function: cst.FunctionDef) -> str:
    params = [*function.params.posonly_params, *function.params.params]
    return params[0].name.value if params else ""


def _atoms(meter: Meter, function: cst.FunctionDef, local: set[str]) -> Iterator[cst.BaseExpression]:
    """The smallest expressions in ``function`` that are made of the value."""
    source, me = meter.source, _self(function)
    for name in [*local]:  # it grows meanwhile
        yield from source.reads(name, function)
    for node in source.nodes(cst.Attribute, within=function):
        if isinstance(node.value, cst.Name) and node.value.value == me and not source.binds(node):
            member, above = node.attr.value, source.parent(node)
            if member in meter.held or (member in meter.giving and meter.is_property(member)):
                yield node
            elif member in meter.giving and isinstance(above, cst.Call):
                yield above


def _outermost(source: Source, node: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
    """The arithmetic that ``node`` is a part of, and whether there is any."""
    computed = False
    while True:
        above = source.parent(node)
        if isinstance(above, (cst.BinaryOperation, cst.UnaryOperation)):
            if not isinstance(above.operator, (*ARITHMETIC, cst.Minus)):
                return node, computed
            computed = True
        elif not isinstance(above, cst.IfExp) or above.test is node:
            return node, computed
        node = above


def _follow(
    meter: Meter, function: cst.FunctionDef, atom: cst.BaseExpression, local: set[str], aliased: set[str]
) -> cst.BaseExpression | None:
    """Notes where arithmetic with ``atom`` is put; what is used in another way is given back."""
    source = meter.source
    node, computed = _outermost(source, atom)
    above = source.parent(node)
    if isinstance(above, cst.Return):
        meter.giving.add(function.name.value)
        return None
    targets: list[cst.BaseExpression] = []
    if isinstance(above, cst.Assign):
        targets = [one.target for one in above.targets]
    elif isinstance(above, cst.AnnAssign):
        targets = [above.target]
    elif isinstance(above, cst.AugAssign) and isinstance(above.operator, _IN_PLACE):
        targets, computed = [above.target], True
    if not targets:
        return node
    for target in targets:
        if isinstance(target, cst.Name):
            local.add(target.value)
        elif isinstance(target, cst.Attribute) and source.code(target.value) == _self(function):
            meter.held.add(target.attr.value)
        else:
            return node
        if not computed:
            aliased |= {source.code(target), source.code(atom)}
    return None


def is_formatted(source: Source, node: cst.CSTNode) -> bool:
    """Whether a tensor of one number gives the same text there as the number: ``f"{x:.3f}"``,
    ``"{}".format(x)``, ``"%.3f" % x``."""
    above = source.parent(node)
    if isinstance(above, cst.FormattedStringExpression):
        return above.expression is node and above.conversion is None and above.equal is None
    if isinstance(above, cst.Arg) and not above.star and is_method(call := source.parent(above), "format"):
        assert isinstance(call, cst.Call)
        texts = source.nodes(cst.SimpleString, within=call.func)
        return bool(texts) and not any(_CONVERTED.search(one.value) for one in texts)
    at = 0
    if isinstance(above, cst.Element) and isinstance(row := source.parent(above), cst.Tuple):
        at, node = row.elements.index(above), row
        above = source.parent(row)
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Modulo):
        return False
    text = source.literal(above.left)
    kinds = [one for one in _CONVERSION.findall(text) if one != "%"] if isinstance(text, str) else []
    return above.right is node and at < len(kinds) and kinds[at] in _REAL


def _is_converted(source: Source, node: cst.CSTNode) -> bool:
    """Whether it becomes a number there: ``float(x)``, or an entry of ``torch.tensor([x, n], dtype=...)``."""
    above = source.parent(node)
    if isinstance(above, cst.Element) and isinstance(row := source.parent(above), cst.List):
        call = source.parent(arg) if isinstance(arg := source.parent(row), cst.Arg) else None
        if not isinstance(call, cst.Call) or source.name(call.func) != "torch.tensor":
            return False
        return call.args[0] is arg and source.argument(call, "dtype") is not None
    return isinstance(above, cst.Arg) and source.is_named(
        getattr(source.parent(above), "func", None), "float"
    )


def reads(
    context: Context, source: Source, name: cst.Name, scope: cst.CSTNode, meter: Meter
) -> Iterator[Read]:
    """Where the meter ``name`` is read in its ``scope``. Raises Refused where it is handed on to anything
    that might tell a tensor from a number."""
    for use in source.reads(name.value, scope):
        above = source.parent(use)
        handed = Refused(f"`{line_at(source.code(source.statement(use) or use), 1)}` may need its values")
        if isinstance(above, cst.Attribute):
            yield from _member(source, above, meter, handed)
        elif _is_put_into_text(source, use):
            yield Read(use, False)
        else:
            yield from _listed(context, source, use, meter, handed)


def _is_put_into_text(source: Source, use: cst.Name) -> bool:
    """Whether an object is shown there by methods of its own, or those of its parts that a format names."""
    above = source.parent(use)
    call = source.parent(above) if isinstance(above, cst.Arg) and not above.star else None
    if isinstance(call, cst.Call) and source.is_named(call.func, *_SHOW):
        return True
    shown = isinstance(above, cst.FormattedStringExpression) and above.expression is use
    return shown or is_formatted(source, use)


def _member(source: Source, access: cst.Attribute, meter: Meter, handed: Refused) -> Iterator[Read]:
    """The read that ``access``, ``meter.avg`` say, is, if it is one."""
    member, above = access.attr.value, source.parent(access)
    call = above if isinstance(above, cst.Call) and above.func is access else None
    if source.binds(access):
        if not isinstance(above, cst.AssignTarget):
            raise handed
    elif member in meter.held or (member in meter.giving and meter.is_property(member)):
        yield Read(access, True)
    elif member in meter.methods:
        if call is None:
            raise handed
        if member in meter.giving | meter.telling:
            yield Read(call, member in meter.giving)
    elif member.startswith("__"):
        raise handed


def _listed(context: Context, source: Source, use: cst.Name, meter: Meter, handed: Refused) -> Iterator[Read]:
    """The calls of an object that got the meter, in a list with others, to show them all."""
    above = source.parent(use)
    arg = source.parent(row) if isinstance(above, cst.Element) and (row := source.parent(above)) else above
    call = source.parent(arg) if isinstance(arg, cst.Arg) else None
    board = only_target(source.parent(call)) if isinstance(call, cst.Call) else None
    if not isinstance(board, cst.Name) or not isinstance(call, cst.Call) or not isinstance(arg, cst.Arg):
        raise handed
    made = made_once(context, source, board)
    if made is None:
        raise handed
    scope, where, owner = made
    make = methods(owner).get("__init__")
    given = parameter_of(make, arg, call) if make is not None else None
    if make is None or given is None or not _only_shows(context, where, owner, make, given, meter):
        raise handed
    for other in source.reads(board.value, scope):
        access = source.parent(other)
        shown = source.parent(access) if isinstance(access, cst.Attribute) else None
        if not isinstance(shown, cst.Call) or shown.func is not access:
            raise handed
        yield Read(shown, False)


def _only_shows(
    context: Context, source: Source, owner: cst.ClassDef, make: cst.FunctionDef, given: str, meter: Meter
) -> bool:
    """Whether the class keeps the list ``given`` in an attribute, and only has its meters shown."""
    reads = source.reads(given, make.body)
    target = only_target(source.parent(reads[0])) if len(reads) == 1 else None
    if not isinstance(target, cst.Attribute) or source.code(target.value) != _self(make):
        return False
    for other in context.sources():
        for node in other.nodes(cst.Attribute):
            if node.attr.value != target.attr.value or node is target:
                continue
            loop = other.parent(node)
            if not other.inside(node, owner) or not isinstance(loop, (cst.For, cst.CompFor)):
                return False
            body = loop if isinstance(loop, cst.For) else other.parent(loop)
            if loop.iter is not node or not isinstance(loop.target, cst.Name) or body is None:
                return False
            if not all(_is_shown(other, one, meter) for one in other.reads(loop.target.value, body)):
                return False
    return True


def _is_shown(source: Source, each: cst.Name, meter: Meter) -> bool:
    """Whether a meter of a list is only put into text."""
    above = source.parent(each)
    if isinstance(above, cst.Attribute):
        call = source.parent(above)
        called = isinstance(call, cst.Call) and call.func is above
        member = above.attr.value
        if member in meter.held | meter.giving:
            return is_formatted(source, call if called and call is not None else above)
        return called == (member in meter.methods) and not member.startswith("__")
    return _is_put_into_text(source, each)
