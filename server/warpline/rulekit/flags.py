"""The flag that has code run, and the one place where its value is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.holders import by_hand, literal_at, words
from warpline.rulekit.origins import (
    Origin,
    bare_switch,
    called_as,
    fields,
    is_self,
    only_value,
    origin,
    overridden,
    passing,
)
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import NOT_LITERAL, Source, Statement, alone
from warpline.wire.births import Argument, Holder

_DEPTH = 4  # conditions that are followed one after the other: chosen, so that a circle ends
_CONDITIONS = (cst.BooleanOperation, cst.UnaryOperation, cst.Comparison)


@dataclass(frozen=True, slots=True)
class Switch:
    """``on``: whether the value, as it is written, is the one with which the code runs."""

    flag: Origin
    on: bool


def switch_of(context: Context, source: Source, node: cst.CSTNode) -> Switch | None:
    """The value of the flag by which ``node`` runs, such as the ``True`` behind ``if config.save_memory:``.

    Where the whole function runs it, the flag may choose the function, or whether its class is wrapped around
    something, instead.
    None where no flag decides it, or it is not known where the flag is written.
    """
    passed = [*_passed(context, source, node)]
    if passed:
        return passed[0]
    found = [*decided(context, source, node)]
    function = source.enclosing(node, cst.FunctionDef)
    owner = source.enclosing(function, cst.ClassDef) if function is not None else None
    for outer in (one for one in (function, owner) if one is not None and not found):
        named = [one for one in source.nodes(cst.Name) if one.value == outer.name.value]
        uses = [one for one in named if one is not outer.name and (outer is function or _wraps(source, one))]
        found = [one for use in uses for one in decided(context, source, use)]
    if not any(one.on for one in found) and context.reached.node(source, node) is not False:
        found = [*_set_on(context, source, node), *found]
    return next((one for one in found if one.on), found[0] if found else None)


def _passed(context: Context, source: Source, node: cst.CSTNode) -> Iterator[Switch]:
    """The value that a module's constructor got for a flag of the object, as the run recorded it, where
    ``node`` runs by that flag. Nothing where it is not a literal in the script."""
    for one, held in _given(context, source, node):
        try:
            where, literal = literal_at(context, held, one.value)
        except Refused:
            continue
        yield Switch(Origin("literal", where, literal, words(held)), True)


def changed_by_hand(context: Context, source: Source, node: cst.CSTNode) -> str:
    """What to change where that value is none in the script, but on the command line, say; "" where it is, or
    is not known."""
    told = (by_hand(held, one.name) for one, held in _given(context, source, node))
    return next((one for one in told if one), "")


def _given(context: Context, source: Source, node: cst.CSTNode) -> Iterator[tuple[Argument, Holder]]:
    """What constructors of modules got for a flag by which ``node`` runs, and what holds it. Nothing where
    modules got several values, or not what has it run."""
    for where, part, needed in _flags_of_objects(context, source, node):
        name = _parameter(context, where, part)
        given = [one for site in context.sites("module") for one in site.arguments if one.name == name]
        holders = {(one.holder.kind, one.holder.place): one for one in given if one.holder is not None}
        if len(holders) == 1 and all(one.value is needed and one.passed for one in given):
            (one,) = holders.values()
            assert one.holder is not None
            yield one, one.holder


def _flags_of_objects(
    context: Context, source: Source, node: cst.CSTNode
) -> Iterator[tuple[Source, cst.Attribute, bool]]:
    """The flags of an object by which ``node`` runs, each with what it has to be: its method's own, or that
    which all calls give to a parameter of the function, ``run(block, x, self.saving)``."""
    for part, needed in _own_flags(source, node):
        yield source, part, needed
    function = source.enclosing(node, cst.FunctionDef)
    for name, needed in conditions(source, node):
        if function is None or not isinstance(name, cst.Name):
            continue
        calls = passing(context, source, function, name.value)
        flags = [
            (where, arg.value)
            for where, _, arg in calls
            if isinstance(arg.value, cst.Attribute) and is_self(arg.value.value)
        ]
        same = {_parameter(context, *one) for one in flags}
        if len(same) == 1 and len(flags) == len([*context.calls(called_as(source, function))]):
            yield *flags[0], needed


def _parameter(context: Context, source: Source, flag: cst.Attribute) -> str:
    """The parameter of the constructor that an object's flag is, of another name as in ``self.lean =
    saving``."""
    given = only_value(context, source, flag)
    if given is None or not isinstance(given[1], cst.Name) or given[0].literal(given[1]) is not NOT_LITERAL:
        return flag.attr.value
    return given[1].value


def _wraps(source: Source, name: cst.Name) -> bool:
    """Whether a call of the class replaces what it is given: ``Saving(block) if save else block``, or
    ``blocks = [Saving(block) for block in blocks]``."""
    call, choice = source.parent(name), source.enclosing(name, cst.IfExp)
    if not isinstance(call, cst.Call):
        return False
    if choice is not None:
        left = choice.orelse if source.inside(name, choice.body) else choice.body
        return source.code(left) in [source.code(arg.value) for arg in call.args]
    assign = source.enclosing(name, cst.Assign)
    return assign is not None and any(
        source.code(one) == source.code(target.target)
        for target in assign.targets
        for one in source.nodes(type(target.target), within=assign.value)
    )


def switched_off(context: Context, name: str) -> Origin | None:
    """The script's own flag, such as ``--amp``, without which code with ``name`` in it did not run; also what
    the call of that name takes as ``enabled``. None where there are several or none, or where the command
    line says so."""
    found: dict[tuple[str, int], Origin] = {}
    for source in context.sources():
        for node in source.nodes(cst.Name, cst.Attribute):
            if not source.is_named(node, name):
                continue
            if context.reached.node(source, node) is False:
                switch = switch_of(context, source, node)
                if switch is not None and not switch.on:
                    found[switch.flag.place] = switch.flag
        for call in source.calls_of(name):
            enabled = source.argument(call, "enabled")
            for switch in flags_of(context, source, enabled.value, True) if enabled is not None else ():
                if not switch.on:
                    found[switch.flag.place] = switch.flag
    (flag,) = found.values() if len(found) == 1 else (None,)
    return flag if flag is not None and overridden(context, flag) is None else None


def switch_on(flag: Origin, title: str) -> Fix:
    """The fix that gives ``flag`` its other value."""
    return turned(flag).fix(title, "unsafe")


def turned(flag: Origin) -> Edits:
    """The edit that gives the flag its other value."""
    value = flag.source.literal(flag.node)
    if isinstance(value, str):  # the action of an option without a default
        turned_on = value == "store_true"
        return Edits(flag.source).replace(flag.node, f"{flag.source.code(flag.node)}, default={turned_on}")
    return Edits(flag.source).replace(flag.node, str(not value))


def switching_call(context: Context, source: Source, node: cst.CSTNode) -> tuple[Source, cst.Call] | None:
    """The only call of a function that has ``node`` run by setting a flag of an object, and does nothing
    else; of one that hands such a function on (``model.apply(saving)``), where that is all that it does.

    None where there is no such call or several, where its result is used, and where the flag may be set by
    anything else.
    """
    for name, needed in _flag_names(source, node):
        given = [
            (where, assign)
            for where, assign, _ in attributes_assigned(context, name)
            if where.literal(assign.value) is not (not needed)
            and context.reached.node(where, assign) is not False
        ]
        plain = len(given) == 1 and isinstance(given[0][1].value, cst.Name)  # True, or a parameter
        found = _only_call(context, *given[0]) if plain else None
        if found is not None:
            return found
    return None


def _flag_names(source: Source, node: cst.CSTNode) -> Iterator[tuple[str, bool]]:
    """The attributes in the conditions of ``node``, also those that ``getattr`` asks for, each with what it
    has to be."""
    for part, needed in conditions(source, node):
        asked = part.args if isinstance(part, cst.Call) and source.is_named(part.func, "getattr") else ()
        name = source.literal(asked[1].value) if len(asked) > 1 else None
        if isinstance(part, cst.Attribute):
            name = part.attr.value
        if isinstance(name, str):
            yield name, needed


def _only_call(
    context: Context, source: Source, node: cst.CSTNode, depth: int = _DEPTH
) -> tuple[Source, cst.Call] | None:
    """The one call of the function that does only what ``node`` says, for nothing else."""
    function = source.enclosing(node, cst.FunctionDef)
    if function is None or not depth or not _does_only(source, function, node):
        return None
    uses = [
        (where, name)
        for where in context.sources()
        for name in where.nodes(cst.Name)
        if name.value == function.name.value and name is not function.name
        if where.enclosing(name, cst.Import, cst.ImportFrom) is None
        if context.reached.node(where, name) is not False
    ]
    if len(uses) != 1:
        return None
    ((where, name),) = uses
    own = alone(where.statement(name))
    call = own.value if isinstance(own, cst.Expr) else None
    if isinstance(call, cst.Call) and any(
        name is one for one in (call.func, getattr(call.func, "attr", None))
    ):
        return where, call
    return _only_call(context, where, name, depth - 1)


def _does_only(source: Source, function: cst.FunctionDef, node: cst.CSTNode) -> bool:
    """Whether a function does nothing but what ``node`` says, and checks before it."""
    one: cst.CSTNode | None = source.statement(node)
    while isinstance(one, Statement) and one is not function:
        others = [other for other in source.block(one) if other is not one]
        if getattr(one, "orelse", None) is not None or not all(map(_does_nothing, others)):
            return False
        one = source.enclosing(one, cst.If, cst.For, cst.With, cst.FunctionDef)
    return one is function and function.name.value != "__init__"


def _does_nothing(statement: cst.CSTNode) -> bool:
    """Whether it is a docstring, a definition, or a check that may raise."""
    if isinstance(statement, cst.If):
        return statement.orelse is None and all(map(_does_nothing, statement.body.body))
    own = alone(statement)
    text = isinstance(own, cst.Expr) and isinstance(own.value, cst.SimpleString)
    return text or isinstance(statement, cst.FunctionDef) or isinstance(own, (cst.Assert, cst.Raise))


def _set_on(context: Context, source: Source, node: cst.CSTNode) -> Iterator[Switch]:
    """The value that is given from outside, ``block.saving = config.saving``, to a flag that the object's own
    class has off: ``node`` ran, so that is what has it run. None where several places set the flag."""
    for part, needed in _own_flags(source, node):
        given = _set_outside(context, part.attr.value)
        if len(given) != 1 or all(one.on for one in flags_of(context, source, part, needed)):
            continue
        ((where, value),) = given
        flag = _written(context, where, value, source.enclosing(part, cst.ClassDef))
        if (
            context.reached.node(where, value) is not False
            and flag is not None
            and flag.source.literal(flag.node) is needed
        ):
            yield Switch(flag, True)


def _written(
    context: Context, source: Source, value: cst.BaseExpression, owner: cst.ClassDef | None
) -> Origin | None:
    """Where ``value`` is written. Of classes with a field of that name, ``owner`` is not meant: its objects
    get the value. None where a call passes the field, whatever its default is."""
    found = origin(context, source, value)
    if found.kind == "unknown" and isinstance(value, cst.Attribute):
        others = [
            one
            for one in fields(context, value.attr.value)
            if one.source.enclosing(one.node, cst.ClassDef) is not owner
        ]
        if len(others) != 1:
            return None
        (found,) = others
    if found.kind == "field" and isinstance(value, cst.Attribute):
        name = value.attr.value
        if any(other.argument(call, name) is not None for other, call in context.calls()):
            return None
    return found if found.kind != "unknown" else None


def _set_outside(context: Context, name: str) -> list[tuple[Source, cst.BaseExpression]]:
    """What assignments give the attribute ``name`` of an object that is not a method's own:
    ``model.saving = True``."""
    return [
        (source, assign.value)
        for source, assign, target in attributes_assigned(context, name)
        if not is_self(target.value)
    ]


def attributes_assigned(context: Context, name: str) -> Iterator[tuple[Source, cst.Assign, cst.Attribute]]:
    """The assignments to an attribute ``name``, each with its target."""
    for source in context.sources():
        for assign in source.nodes(cst.Assign):
            for one in assign.targets:
                if isinstance(one.target, cst.Attribute) and one.target.attr.value == name:
                    yield source, assign, one.target


def decided(context: Context, source: Source, node: cst.CSTNode) -> Iterator[Switch]:
    """The flags of the conditions around ``node`` in its function, and of the returns before it."""
    for part, holds in conditions(source, node):
        yield from flags_of(context, source, part, holds)


def _own_flags(source: Source, node: cst.CSTNode) -> Iterator[tuple[cst.Attribute, bool]]:
    """The conditions that are attributes of the method's own object, each with what it has to be."""
    for part, needed in conditions(source, node):
        if isinstance(part, cst.Attribute) and is_self(part.value):
            yield part, needed


def conditions(source: Source, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """What has to hold, or not, for ``node`` to run: conditions around it and returns before it, taken apart
    where each part has to."""
    for outer in source.ancestors(node):
        if isinstance(outer, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            return
        if isinstance(outer, (cst.If, cst.IfExp)) and node is not outer.test:
            yield from _parts(outer.test, node is outer.body)
        if isinstance(outer, cst.IndentedBlock):
            for before in outer.body[: outer.body.index(node)]:
                if isinstance(before, cst.If) and before.orelse is None and _leaves(before):
                    yield from _parts(before.test, False)
        node = outer


def _parts(test: cst.BaseExpression, holds: bool) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """Expressions without which ``test`` would not be as it is, ``holds`` or not, each with what it is."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _parts(test.expression, not holds)
    elif isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And if holds else cst.Or):
            for part in (test.left, test.right):
                yield from _parts(part, holds)
    else:
        yield test, holds


def _leaves(condition: cst.If) -> bool:
    last = condition.body.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, (cst.Return, cst.Continue))


def flags_of(context: Context, source: Source, test: cst.BaseExpression, holds: bool) -> Iterator[Switch]:
    """Flags without which ``test`` would not be as it is: ``holds`` or not."""
    for where, part, needed in parts_of(context, source, test, holds):
        found = origin(context, where, part)
        value = found.source.literal(found.node) if found.kind != "unknown" else None
        if isinstance(value, bool):
            yield Switch(found, value is needed)
        elif isinstance(part, cst.Attribute) and (bare := bare_switch(context, part.attr.value)) is not None:
            yield Switch(bare, (bare.source.literal(bare.node) == "store_false") is needed)


def parts_of(
    context: Context, source: Source, test: cst.BaseExpression, holds: bool, depth: int = _DEPTH
) -> Iterator[tuple[Source, cst.BaseExpression, bool]]:
    """Expressions without which ``test`` would not be as it is, ``holds`` or not, each with what it is; those
    of a condition that a name stands for, too."""
    for part, needed in _parts(test, holds):
        yield source, part, needed
        if depth and (given := _behind(context, source, part)) is not None:
            where, inner, same = given
            yield from parts_of(context, where, inner, needed is same, depth - 1)


def _behind(
    context: Context, source: Source, part: cst.BaseExpression
) -> tuple[Source, cst.BaseExpression, bool] | None:
    """The condition that a name stands for, as of ``use = args.amp and cuda``, or ``args.amp`` of
    ``scaler is not None`` after ``scaler = GradScaler() if args.amp else None``; and whether it is the same
    as ``part``, not its opposite."""
    name, there = part, None
    if isinstance(part, cst.Comparison) and len(part.comparisons) == 1:
        name, compared = part.left, part.comparisons[0]
        known = (
            isinstance(compared.operator, (cst.Is, cst.IsNot)) and source.literal(compared.comparator) is None
        )
        there = isinstance(compared.operator, cst.IsNot) if known else None
        if there is None:
            return None
    given = only_value(context, source, name)
    if given is None:
        return None
    where, value = given
    if there is None:
        return (where, value, True) if isinstance(value, _CONDITIONS) else None
    if not isinstance(value, cst.IfExp):
        return None
    nothing = [where.literal(one) is None for one in (value.body, value.orelse)]
    return (where, value.test, there is nothing[1]) if nothing[0] != nothing[1] else None
