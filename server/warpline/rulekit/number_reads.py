"""A number that a script writes, and all that reads it: whether another could stand there."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator
from dataclasses import replace

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.options import option_names
from warpline.rulekit.origins import Ends, Origin, assignments, origin, parameter_of
from warpline.syntax.source import Source, methods

#: How a number is read.
READS = (cst.Name, cst.Attribute, cst.Subscript)
PRINTS = ("print", "info", "debug", "warning", "log")


def is_whole(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is a whole number, or a product of such, as ``5 * 8``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return is_whole(source, node.left) and is_whole(source, node.right)
    return isinstance(node, cst.Integer)


def is_number(source: Source, node: cst.BaseExpression) -> bool:
    """The same, or one of such numbers by a condition, as ``4 if TINY else 64``."""
    if isinstance(node, cst.IfExp):
        return is_number(source, node.body) and is_number(source, node.orelse)
    return is_whole(source, node)


def fitting(context: Context, found: Origin, fits: Callable[[int], bool]) -> tuple[Origin, int] | None:
    """The number that is written there and was the run's: of those by a condition the only one that fits."""
    nodes = [found.node]
    while any(isinstance(node, cst.IfExp) for node in nodes):
        pairs = [(node.body, node.orelse) if isinstance(node, cst.IfExp) else (node,) for node in nodes]
        nodes = [node for pair in pairs for node in pair]
    origins = [replace(found, node=node) for node in nodes]
    numbers = [(one, number) for one in origins if (number := whole(context, one)) is not None]
    fit = [(one, number) for one, number in numbers if fits(number)]
    return fit[0] if len(fit) == 1 else None


def whole(context: Context, found: Origin) -> int | None:
    """The number that is written there; None for anything else, and for a field that calls give another."""
    if found.kind == "field":
        held = held_as(found)
        if any(source.argument(call, held) is not None for source, call in context.calls()):
            return None
    if found.kind == "unknown" or not is_whole(found.source, found.node):
        return None
    numbers = found.source.nodes(cst.Integer, within=found.node)
    return math.prod(int(one.value, 0) for one in numbers)


def held_as(found: Origin) -> str:
    """The variable, field, option or keyword that is given the value; "" for none."""
    for node in found.source.ancestors(found.node):
        if isinstance(node, cst.Assign):
            return last_word(found.source, node.targets[0].target)
        if isinstance(node, cst.AnnAssign):
            return last_word(found.source, node.target)
        if isinstance(node, cst.Param):
            return node.name.value
        if isinstance(node, cst.DictElement):
            return str(found.source.literal(node.key))
        if isinstance(node, cst.Call):
            options = option_names(found.source, node)
            if options:
                return options[-1].lstrip("-").replace("-", "_")
        if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value != "default":
            return node.keyword.value
    return ""


def last_word(source: Source, node: cst.CSTNode) -> str:
    """The last word of ``name``, ``plan.name`` or ``plan["name"]``; "" for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        key = source.literal(index.value) if isinstance(index, cst.Index) else None
        return key if isinstance(key, str) else ""
    return ""


class Reads:
    """All that reads a number, as far as the text says."""

    def __init__(self, context: Context, found: Origin, ends: Ends = is_number) -> None:
        self._context, self.found, self._ends = context, found, ends
        self.nodes = {node: source for source, node in self._follow()}

    def _follow(self) -> Iterator[tuple[Source, cst.BaseExpression]]:
        """Reads under the name that it is written by, and under those that it is passed on by."""
        words, seen = [held_as(self.found)], set[str]()
        if self.found.kind == "literal":
            yield self.found.source, self.found.node
        while words:
            word = words.pop()
            if not word or word in seen:
                continue
            seen.add(word)
            for source in self._context.sources():
                for node in source.nodes(*READS):
                    if last_word(source, node) == word and self._is_read(source, node):
                        yield source, node
                        words += _names(source, node)

    def _is_read(self, source: Source, node: cst.BaseExpression) -> bool:
        above = source.parent(node)
        if isinstance(node, cst.Name) and (not source.is_value(node) or isinstance(above, cst.Param)):
            return False
        if isinstance(above, cst.Call) and above.func is node:
            return False
        if isinstance(node, (cst.Name, cst.Attribute)) and source.binds(node):
            return False
        if self._context.reached.node(source, node) is False:
            return False
        return origin(self._context, source, node, ends=self._ends).node is self.found.node

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def only_counts(self, loop: cst.For, written: cst.BaseExpression, sizes: Reads | None) -> bool:
        """Whether it is read for what fewer and larger batches do not change, or change with it. ``written``:
        what the update counts its batches by."""
        return all(
            node is written
            or source.inside(node, loop.iter)
            or _is_cycle(source, node)
            or _is_passed(self, source, node)
            or is_divisor(source, node)
            or _is_last(source, node)
            or is_told(source, node)
            or _in_product(source, node, sizes)
            or _in_product_of_loss(source, node)
            for node, source in self.nodes.items()
        )

    def only_sizes(self, taken: Container[object], counts: Container[object]) -> bool:
        """The same of the number of rows. ``taken``: what the batches are cut by."""
        return all(
            node in taken
            or _is_passed(self, source, node)
            or is_told(source, node)
            or _in_product(source, node, counts)
            for node, source in self.nodes.items()
        )


def _names(source: Source, node: cst.BaseExpression) -> list[str]:
    """What a number is called where this read passes it on: by an assignment, or as an argument."""
    above = source.parent(node)
    if isinstance(above, (cst.Assign, cst.AnnAssign, cst.Element)):
        given = assignments(source, source.statement(node))
        return [last_word(source, target) for target, value in given if value is node]
    param = _param(source, node)
    return [param[0]] if param is not None else []


def _param(source: Source, node: cst.BaseExpression) -> tuple[str, cst.FunctionDef] | None:
    """The parameter of a function or class of this file that gets it, and that function."""
    arg = source.parent(node)
    call = source.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call) or arg.star:
        return None
    name = last_word(source, call.func)
    made = [methods(one).get("__init__") for one in source.nodes(cst.ClassDef) if one.name.value == name]
    functions = [*source.functions(name), *(one for one in made if one is not None)]
    given = parameter_of(functions[0], arg, call) if len(functions) == 1 else None
    return (given, functions[0]) if given is not None else None


def _is_passed(reads: Reads, source: Source, node: cst.BaseExpression) -> bool:
    """Whether all of its new name's reads are known to be of this number."""
    names, param = _names(source, node), _param(source, node)
    within = param[1] if param is not None else source.module
    return bool(names) and all(
        any(
            where is source and last_word(where, one) == name and where.inside(one, within)
            for one, where in reads.nodes.items()
        )
        for name in names
    )


def is_divisor(source: Source, node: cst.BaseExpression) -> bool:
    """Whether something is divided by it, as each loss: ``loss / n``, ``loss /= n``, ``loss.div(n)``."""
    above = source.parent(node)
    if isinstance(above, cst.BinaryOperation):
        return above.right is node and isinstance(above.operator, (cst.Divide, cst.FloorDivide))
    if isinstance(above, cst.AugAssign):
        return above.value is node and isinstance(above.operator, cst.DivideAssign)
    call = source.taking(node)
    return call is not None and source.is_named(call.func, "div", "div_", "true_divide")


def _is_cycle(source: Source, node: cst.BaseExpression) -> bool:
    """Whether turns are counted by it: ``(i + 1) % n``."""
    above = source.parent(node)
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Modulo):
        return False
    return above.right is node


def _is_last(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is ``n - 1`` in a comparison: the last of the parts."""
    above = source.parent(node)
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, cst.Subtract):
        return False
    outer = source.parent(above)
    compared = isinstance(outer, (cst.Comparison, cst.ComparisonTarget))
    return compared and above.left is node and source.literal(above.right) == 1


def is_told(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is only printed."""
    if source.enclosing(node, cst.FormattedStringExpression) is not None:
        return True
    call = source.taking(node)
    return call is not None and source.is_named(call.func, *PRINTS)


def _factors_around(source: Source, node: cst.BaseExpression) -> cst.BaseExpression:
    """The largest product or quotient whose factor it is."""
    whole: cst.BaseExpression = node
    above = source.parent(whole)
    while isinstance(above, cst.BinaryOperation):
        multiplied = isinstance(above.operator, cst.Multiply)
        divided = isinstance(above.operator, (cst.Divide, cst.FloorDivide)) and above.left is whole
        if not multiplied and not divided:
            break
        whole, above = above, source.parent(above)
    return whole


def _in_product(source: Source, node: cst.BaseExpression, others: Container[object] | None) -> bool:
    """Whether it is multiplied by the other number, which gives the samples of an update."""
    whole = _factors_around(source, node)
    if others is None or whole is node:
        return False
    inner = source.nodes(*READS, within=whole)
    return any(one in others and _factors_around(source, one) is whole for one in inner)


def _in_product_of_loss(source: Source, node: cst.BaseExpression) -> bool:
    """Whether a part's loss is multiplied by it, as ``loss.item() * n``, to undo the division."""
    whole = _factors_around(source, node)
    calls = source.nodes(cst.Call, within=whole)
    return whole is not node and any(source.is_named(call.func, "item", "detach") for call in calls)


def is_averaged(reads: Reads, source: Source, loop: cst.For) -> bool:
    """Whether the loop divides by the number of its turns, or multiplies by what was divided by it."""
    for node, where in reads.nodes.items():
        inside = where is source and source.inside(node, source.scope(loop))
        if not inside or not is_divisor(source, node):
            continue
        above = source.parent(node)
        one = isinstance(above, cst.BinaryOperation) and source.literal(above.left) in (1, 1.0)
        if source.inside(node, loop) or one:
            return True
    return False
