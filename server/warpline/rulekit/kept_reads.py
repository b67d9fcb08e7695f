"""Whether a program reads more of what it keeps than the newest entries and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.entries import functions_called
from warpline.rulekit.kept_statements import (
    CONTAINERS,
    EACH_STEP,
    KEEPS,
    given_to,
    last_name,
    parts_of,
    uses_of,
    whole_name,
)
from warpline.rulekit.origins import LIBRARIES, parameter_of, parameters
from warpline.syntax.source import Source, called_name, only_target

#: Methods that give an entry, or all of them.
_ENTRIES = ("values", "items", "get", "setdefault")
#: A name there is a parameter's, or an imported one: it is not read.
_NAMING = (cst.Param, cst.ImportAlias, cst.NameItem)
_Use = tuple[Source, cst.CSTNode]
#: A name, and the code that has it.
_Named = tuple[Source, str, cst.CSTNode]


def reads_only_newest(context: Context, keeper: str, keeping: LineCost | None) -> bool:
    """Whether all that is done with what has the last name ``keeper``, under any name, reads nothing but its
    newest entries. ``keeping``: the line that adds to it."""
    uses = [(source, whole_name(source, name)) for source, name in uses_of(context, keeper)]
    return _Reads(context, keeping).are_few(uses)


@dataclass(frozen=True, slots=True)
class _Reads:
    """``followed``: names, each with the code that has it."""

    context: Context
    keeping: LineCost | None
    followed: set[tuple[str, cst.CSTNode]] = field(default_factory=set)

    def are_few(self, uses: Sequence[_Use]) -> bool:
        """Whether nothing more is read of expressions that stand for what is kept, or for an entry of it."""
        waiting, seen = list(uses), set[cst.CSTNode]()
        while waiting:
            source, node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            others = self._others(source, node)
            if others is None:
                return False
            waiting += others
        return True

    def _others(self, source: Source, node: cst.CSTNode) -> list[_Use] | None:
        """What stands for the same elsewhere; None where more is read here than the newest entries."""
        above = source.parent(node)
        call = source.taking(node)
        if isinstance(above, (cst.Expr, *_NAMING)) or (call is not None and source.name(call.func) == "len"):
            return []
        if isinstance(above, cst.ComparisonTarget) and isinstance(above.operator, (cst.In, cst.NotIn)):
            return []
        if isinstance(above, (cst.AssignTarget, cst.AnnAssign)) and above.target is node:
            value = given_to(source, above)
            fresh = isinstance(value, cst.Call) and called_name(value) in CONTAINERS
            fresh = fresh or isinstance(value, (cst.List, cst.Dict))
            fresh = fresh or (value is not None and last_name(source.returned(value)) == last_name(node))
            return [] if fresh else None  # another name's as well
        if isinstance(above, cst.Attribute):  # `kept.append`, `kept.values()`
            entries = source.parent(above) if above.attr.value in _ENTRIES else None
            if entries is not None:
                return [(source, entries)]
            return [] if above.attr.value in KEEPS else None
        if isinstance(above, cst.Subscript) and above.value is node:
            put = isinstance(source.parent(above), cst.AssignTarget)
            return [] if put or self._is_newest(source, above) else [(source, above)]
        scope = source.enclosing(node, cst.FunctionDef)
        if isinstance(above, cst.Return) and scope is not None:
            calls = list(self.context.calls(scope.name.value))
            thrown = any(isinstance(other.parent(one), cst.Expr) for other, one in calls)
            return list[_Use](calls) if calls and not thrown else None
        names = list(self._names(source, node, call))
        new = [one for one in names if one[1:] not in self.followed]
        self.followed.update(one[1:] for one in new)
        return [(at, one) for at, name, within in new for one in at.reads(name, within)] if names else None

    def _names(self, source: Source, node: cst.CSTNode, call: cst.Call | None) -> Iterator[_Named]:
        """Names that stand for ``node``, or for an entry of it: one that is assigned, what a loop over it
        gives last, and a parameter of a function that gets it."""
        above = source.parent(node)
        target = only_target(above)
        within: cst.CSTNode = source.scope(node)
        if isinstance(above, (cst.For, cst.CompFor)) and above.iter is node:
            target = list(parts_of(above.target))[-1]
            within = above.body if isinstance(above, cst.For) else source.parent(above) or within
        if isinstance(target, cst.Name):
            yield source, target.value, within
        for other, function, name in _given(self.context, source, node, call) if call is not None else ():
            yield other, name, function.body

    def _is_newest(self, source: Source, part: cst.Subscript) -> bool:
        """Whether it is an entry, or some, counted from the end: ``kept[-1]``, ``kept[max(-2, -len(kept))]``,
        ``kept[-size:]`` with a fixed size; or few entries are, as by ``kept[-1 - k]`` in each step."""
        index = part.slice[0].slice if len(part.slice) == 1 else None
        first = index.value if isinstance(index, cst.Index) else getattr(index, "lower", None)
        least = [arg.value for arg in first.args] if isinstance(first, cst.Call) else [first]
        if isinstance(first, cst.Call) and source.name(first.func) != "max":
            return False
        given = [source.literal(one) for one in least]
        if any(isinstance(one, int) and one < 0 for one in given):
            return True
        if isinstance(index, cst.Index):
            return _is_from_end(source, index.value) and self._is_few(source, part)
        minus = isinstance(first, cst.UnaryOperation) and isinstance(first.operator, cst.Minus)
        return minus and isinstance(first, cst.UnaryOperation) and self._is_fixed(source, first.expression)

    def _is_few(self, source: Source, node: cst.CSTNode) -> bool:
        """Whether each step runs ``node`` no more often than the line that adds, so that what it reads,
        counted from the end, does not get more as more is kept."""
        cost = self.context.cost(source.path, source.line(node))
        return cost is not None and self.keeping is not None and EACH_STEP <= cost.calls <= self.keeping.calls

    def _is_fixed(self, source: Source, number: cst.BaseExpression) -> bool:
        """Whether no step gives a name or an attribute another value."""
        if not isinstance(number, (cst.Name, cst.Attribute)):
            return False
        name, places = last_name(number), list[tuple[str, int]]()
        for other in [source] if isinstance(number, cst.Name) else self.context.sources():
            nodes: list[cst.Name | cst.Attribute] = [*other.nodes(type(number))]
            places += [other.place(one) for one in nodes if last_name(one) == name and other.binds(one)]
        again = (self.context.cost(*place) for place in places)
        return bool(places) and not any(cost is not None and cost.calls >= EACH_STEP for cost in again)


def _is_from_end(source: Source, index: cst.BaseExpression) -> bool:
    """Whether it is ``-k`` or ``-1 - k``, where ``k`` is only read."""
    if source.nodes(cst.Call, within=index):
        return False
    while isinstance(index, cst.BinaryOperation) and isinstance(index.operator, cst.Subtract):
        index = index.left
    return isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.Minus)


def _given(
    context: Context, source: Source, node: cst.CSTNode, call: cst.Call
) -> Iterator[tuple[Source, cst.FunctionDef, str]]:
    """The functions of the script's that a call gives ``node``, also later (``partial``), with the parameter
    that has it."""
    arg = next(one for one in call.args if one.value is node)
    if source.is_named(call.func, "functools.partial"):
        at = call.args.index(arg) - 1
        functions = source.functions(last_name(call.args[0].value))
        yield from ((source, one, parameters(one)[at]) for one in functions if at < len(parameters(one)))
        return
    if source.imported_from(call.func).partition(".")[0] in LIBRARIES:
        return
    for other, function in functions_called(context, source, call):
        name = parameter_of(function, arg, call)
        if name is not None:
            yield other, function, name
