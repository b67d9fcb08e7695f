"""Tensors that are kept for good though only the newest are read, and how many of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.keeping import keepers
from warpline.rulekit.kept_for_good import kept_for_good
from warpline.rulekit.kept_statements import given_to, uses_of, whole_name
from warpline.syntax.edits import Edits
from warpline.syntax.source import Source

_DEQUE = "collections.deque"


@dataclass(slots=True)
class Newest:
    """``place``: of what is kept. ``made``: the empty list or deque that keeps it. ``numbers``: how many of
    the newest entries each reading takes."""

    place: tuple[str, int]
    keeper: str
    made: list[tuple[Source, cst.BaseExpression]] = field(default_factory=list)
    numbers: list[tuple[Source, cst.BaseExpression]] = field(default_factory=list)

    def shortened(self) -> Fix:
        """Give it a largest length. The same is read, unless the length is a name that stands for 0: then
        ``list(kept)[-0:]`` is all of it."""
        ((source, made),), edits = self.made, Edits(self.made[0][0])
        literal = [_whole(number) for _, number in self.numbers]
        known = [one for one in literal if one is not None]
        length = str(max(known)) if known else source.code(self.numbers[0][1])
        if isinstance(made, cst.Call):
            name = source.code(made.func)
        else:
            name = edits.add_import(_DEQUE, "import collections")
        edits.replace(made, f"{name}(maxlen={length})")
        return edits.fix("Keep only what is read", "safe" if known else "unsafe")


def newest_read(context: Context) -> Newest | None:
    """The only container of the step's tensors that never gets shorter, where the whole program takes nothing
    but its newest entries, always as many; else None."""
    kept = {source.place(value): keeper for source, value, keeper in kept_for_good(context)}
    made = {source.place(value) for source, value, _ in keepers(context, graph=False)}
    places = kept.keys() & made
    if len(places) != 1:
        return None
    (place,) = places
    found = Newest(place, kept[place])
    by_text = any(
        text.evaluated_value == found.keeper
        for source in context.sources()
        for text in source.nodes(cst.SimpleString)
    )
    if by_text or not all(_is_known(*use, found) for use in uses_of(context, found.keeper)):
        return None
    return found if len(found.made) == 1 and found.numbers and _is_one_number(context, found) else None


def _is_known(source: Source, name: cst.Name, found: Newest) -> bool:
    """Whether the use of a name makes an empty container of it, appends to it or reads its newest entries,
    which ``found`` gets."""
    node: cst.CSTNode = whole_name(source, name)
    above = source.parent(node)
    if isinstance(above, (cst.AssignTarget, cst.AnnAssign)) and above.target is node:
        value = given_to(source, above)
        if value is not None and _is_empty(source, value):
            found.made.append((source, value))
            return True
        return False
    if isinstance(above, cst.Attribute):
        call = source.parent(above)
        return above.attr.value == "append" and isinstance(call, cst.Call) and call.func is above
    if (copied := source.taking(node)) is not None:  # `list(kept)[-n:]`
        if source.name(copied.func) not in ("list", "tuple"):
            return False
        node, above = copied, source.parent(copied)
        number = _from_end(above, "lower") if isinstance(above, cst.Subscript) else None
    else:  # `kept[-1]`
        number = _from_end(above, "value") if isinstance(above, cst.Subscript) else None
    if number is None or not isinstance(above, cst.Subscript) or above.value is not node:
        return False
    found.numbers.append((source, number))
    return not isinstance(source.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del))


def _is_empty(source: Source, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.List):
        return not value.elements
    return isinstance(value, cst.Call) and not value.args and source.is_named(value.func, _DEQUE)


def _from_end(part: cst.Subscript, end: str) -> cst.BaseExpression | None:
    """``n`` of ``[-n:]`` ("lower") and of ``[-n]`` ("value"), which is a number then."""
    index = part.slice[0].slice if len(part.slice) == 1 else None
    if isinstance(index, cst.Slice) and (index.upper is not None or index.step is not None):
        return None
    given = getattr(index, end, None)
    if not isinstance(given, cst.UnaryOperation) or not isinstance(given.operator, cst.Minus):
        return None
    number = _whole(given.expression)
    fits = number != 0 and (number is not None or end == "lower")
    return given.expression if fits else None


def _whole(node: cst.BaseExpression) -> int | None:
    return node.evaluated_value if isinstance(node, cst.Integer) else None


def _is_one_number(context: Context, found: Newest) -> bool:
    """Whether all readings take numbers that are written out, or all the same name, which stands for one
    number from before the container is made."""
    names = {source.code(one) for source, one in found.numbers if _whole(one) is None}
    if not names:
        return True
    ((source, made),), (other, number) = found.made, found.numbers[0]
    if len(names) > 1 or any(_whole(one) is not None for _, one in found.numbers) or other is not source:
        return False
    if isinstance(number, cst.Name):
        value = source.constant(number.value)
        later = source.enclosing(made, cst.FunctionDef) is not None  # than the file's own statements
        return value is not None and (later or source.line(value) < source.line(made))
    if not isinstance(number, cst.Attribute) or source.code(number.value) != "self":
        return False
    given = [
        (where, target)
        for where in context.sources()
        for target in where.nodes(cst.Attribute)
        if target.attr.value == number.attr.value and where.binds(target)
    ]
    if len(given) != 1 or given[0][0] is not source:
        return False
    block, first, then = source.block(made), source.statement(given[0][1]), source.statement(made)
    owner = source.enclosing(made, cst.ClassDef)
    before = first in block and then in block and block.index(first) < block.index(then)
    return before and owner is not None and owner is source.enclosing(number, cst.ClassDef)
