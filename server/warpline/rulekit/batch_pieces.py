"""One batch of an update that is cut into pieces of so many rows, whose gradients are added up.

Only their size is written; how many there are follows from it. Larger pieces compute the same, up to
rounding, where each loss is divided by the number of pieces and these are equal, or where it is weighted by
its share of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.number_reads import READS, Reads, fitting, is_divisor, is_number
from warpline.rulekit.origins import Origin, origin
from warpline.rulekit.row_relations import adds_up, rows_of
from warpline.rulekit.slice_ends import is_first
from warpline.rulekit.slicing import cut_sizes
from warpline.rulekit.training import TrainingStep
from warpline.syntax.source import Source, called_name, is_method, receiver

#: A partial step more or less at the window's ends.
TURN = 0.5
#: They take rows of a tensor.
_CUTS = ("aten::split", "aten::slice", "aten::narrow")
#: They make a whole number of a quotient.
_ROUNDS = ("int", "round", "ceil", "max")


@dataclass(frozen=True, slots=True)
class Pieces:
    """``size`` rows each, written at ``rows`` and once more at each of ``again``; ``count``: where their
    number is written, None where it follows. ``reads``: what reads the one or the other; ``sums``: losses
    that are added up over the rows, and divided by the same for all."""

    size: int
    rows: Origin
    again: tuple[Origin, ...]
    count: Origin | None
    reads: Collection[cst.BaseExpression]
    sums: Collection[cst.Call]


def pieces_of(
    context: Context, step: TrainingStep, loop: cst.For, number: int, is_seen: Callable[[int], bool]
) -> Pieces | None:
    """The ``number`` pieces of one batch that a loop takes in each step; None where larger ones would not
    compute the same. ``is_seen``: whether the steps had tensors with so many rows."""
    if not _steps_after(context, step, loop):
        return None
    for taken in cut_sizes(step.source, loop):
        found, *again = (origin(context, step.source, node, ends=is_number) for node in taken)
        again = [one for one in again if one.node is not found.node]
        alike = all(found.kind == one.kind == "literal" for one in again)
        wholes = {rows / number for rows in _cut_rows(context, step.source, taken)}
        row = fitting(context, found, wholes.__contains__) or fitting(context, found, is_seen)
        if (
            row is None
            or not is_seen(row[1])
            or not alike
            or not only_gone_over(step.source, loop, taken)
            or len({one.source.code(one.node) for one in (found, *again)}) > 1
        ):
            continue
        cut = _Cut(context, step, loop, taken, Reads(context, found), number, row[1])
        for counted, count in ((None, None), *cut.numbers()):
            reads = cut.reads(counted)
            if reads is not None:
                return Pieces(row[1], row[0], tuple(again), count, *reads)
    return None


def _steps_after(context: Context, step: TrainingStep, loop: cst.For) -> bool:
    """Whether an optimizer steps once a step, and not in the loop."""
    if any(step.source.is_named(call.func, "step") for call in step.source.nodes(cst.Call, within=loop)):
        return False
    costs = context.costs(where.place(call) for where, call in context.calls("step"))
    return any(abs(cost.calls - 1) <= TURN for cost in costs)


def only_gone_over(source: Source, loop: cst.For, taken: list[cst.BaseExpression]) -> bool:
    """Whether the pieces are only what the loop goes over, each beside others of the same rows. ``taken``:
    what the batch is cut by."""
    lengths = lengths_of(source, loop, taken)
    for name in _names_of(source, loop, taken):
        for read in source.reads(name.value, source.scope(loop)):
            if source.taking(read) not in lengths and not source.inside(read, loop.iter):
                return False
    calls = source.nodes(cst.Call, within=loop.iter)
    beside = [arg.value for call in calls if source.name(call.func) == "zip" for arg in call.args]
    return all(_are_pieces(source, loop, taken, one) for one in beside)


def lengths_of(source: Source, loop: cst.For, taken: list[cst.BaseExpression]) -> list[cst.Call]:
    """``len(pieces)`` of the pieces that the loop goes over, where they have a name."""
    named = {one.value for one in _names_of(source, loop, taken)}
    calls = source.nodes(cst.Call, within=source.scope(loop))
    counted = [call for call in calls if source.name(call.func) == "len" and len(call.args) == 1]
    return [call for call in counted if source.code(call.args[0].value) in named]


def _names_of(source: Source, loop: cst.For, taken: list[cst.BaseExpression]) -> list[cst.Name]:
    names = source.nodes(cst.Name, within=loop.iter)
    return [one for one in names if _are_pieces(source, loop, taken, one)]


def _are_pieces(
    source: Source, loop: cst.For, taken: list[cst.BaseExpression], node: cst.BaseExpression
) -> bool:
    """Whether it is what the batch is cut into, or a name of that."""
    value: cst.BaseExpression | None = node
    if isinstance(node, cst.Name):
        named = source.bindings(node.value, source.scope(loop))
        value = source.given(named[0]) if named else None
    return value is not None and any(source.inside(one, value) for one in taken)


def _cut_rows(context: Context, source: Source, taken: list[cst.BaseExpression]) -> set[int]:
    """The rows of tensors that were seen to be cut where pieces are taken."""
    statements = [one for one in map(source.statement, taken) if one is not None]
    ops = [op for one in statements for cost in context.costs_of(source, one) for op in cost.ops]
    return {op.shapes[0][0] for op in ops if op.name in _CUTS and op.shapes and op.shapes[0]}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A batch cut into ``number`` pieces of ``size`` rows: where they are ``taken``, and what else reads the
    size."""

    context: Context
    step: TrainingStep
    loop: cst.For
    taken: list[cst.BaseExpression]
    sized: Reads
    number: int
    size: int

    def numbers(self) -> Iterator[tuple[Origin, Origin]]:
        """The written numbers of pieces by which the loop divides, each with the one that was the run's."""
        source, seen = self.step.source, list[cst.BaseExpression]()
        for node in source.nodes(*READS, cst.Integer, within=self.loop):
            found = origin(self.context, source, node, ends=is_number) if is_divisor(source, node) else None
            fit = fitting(self.context, found, lambda number: number == self.number) if found else None
            if found is not None and fit is not None and found.node not in seen:
                seen.append(found.node)
                yield found, fit[0]

    def reads(self, counted: Origin | None) -> tuple[set[cst.BaseExpression], list[cst.Call]] | None:
        """What reads the size of the pieces or their number, and the losses that are sums over rows, where
        larger pieces compute the same; else None. ``counted``: where the number is written, too."""
        source, quotients = self.step.source, self._quotients()
        lengths = [(source, call) for call in lengths_of(source, self.loop, self.taken)]
        follows = [*lengths, *quotients.values()]
        counts = [self._reads(where, node) for where, node in follows]
        counts += [Reads(self.context, counted)] if counted is not None else []
        nodes = {node for one in counts for node in one.nodes}
        sizes = (*self.taken, *quotients, *self._cutting())
        if not all(one.only_counts(self.loop, self.loop.iter, self.sized) for one in counts):
            return None
        if not self.sized.only_sizes(sizes, nodes) or not self._only_takes():
            return None
        both = {*nodes, *self.sized.nodes}
        loss = _Loss(source, self.loop, nodes, both, [])
        averaged = loss.degree(self.step.loss) == 1
        weighted = _Loss(source, self.loop, set(), both, []).degree(self.step.loss) == 1
        return (both, loss.sums) if averaged and (weighted or self._is_even()) else None

    def _reads(self, where: Source, node: cst.BaseExpression) -> Reads:
        words = f"`{where.code(node)}`"
        return Reads(self.context, Origin("literal", where, node, words), ends=lambda _, one: one is node)

    def _quotients(self) -> dict[cst.BaseExpression, tuple[Source, cst.BaseExpression]]:
        """What reads the size to divide all rows by it, with the quotient: ``rows // size``."""
        found: dict[cst.BaseExpression, tuple[Source, cst.BaseExpression]] = {}
        for node, where in self.sized.nodes.items():
            whole = where.parent(node)
            if not isinstance(whole, cst.BinaryOperation) or whole.right is not node:
                continue
            outer: cst.BaseExpression = whole
            while isinstance(arg := where.parent(outer), cst.Arg):
                call = where.parent(arg)
                if not isinstance(call, cst.Call) or not where.is_named(call.func, *_ROUNDS):
                    break
                outer = call
            rounded = isinstance(whole.operator, cst.FloorDivide) or outer is not whole
            divides = isinstance(whole.operator, (cst.FloorDivide, cst.Divide))
            of_rows = self._is_total(where, whole.left) or rows_of(where, whole.left) is not None
            if rounded and divides and of_rows:
                found[node] = (where, outer)
        return found

    def _is_total(self, where: Source, node: cst.BaseExpression) -> bool:
        """Whether it is the number of rows of all pieces."""
        total = self.number * self.size
        found = origin(self.context, where, node, ends=is_number)
        return fitting(self.context, found, lambda number: number == total) is not None

    def _cutting(self) -> Iterator[cst.BaseExpression]:
        """What reads the size in a slice of the first dimension beside where the pieces are taken, or to ask
        whether all rows are a multiple of it."""
        near = {self.step.source.scope(one) for one in self.taken}
        for node, where in self.sized.nodes.items():
            above, part = where.parent(node), where.enclosing(node, cst.Slice)
            sliced = part is not None and is_first(where, part) and where.scope(node) in near
            if sliced or (isinstance(above, cst.BinaryOperation) and self._has_rest(where, above, node)):
                yield node

    def _has_rest(self, where: Source, above: cst.BinaryOperation, node: cst.BaseExpression) -> bool:
        modulo = above.right is node and isinstance(above.operator, cst.Modulo)
        return modulo and self._is_total(where, above.left)

    def _only_takes(self) -> bool:
        """Whether the number of a piece, or of its first row, only says which rows it has."""
        source = self.step.source
        for loop in {source.enclosing(one, cst.For) for one in self.taken} | {self.loop}:
            over = loop.iter if loop is not None else None
            if loop is None or not isinstance(over, cst.Call) or not source.is_named(over.func, "range"):
                continue
            for node in source.reads(source.code(loop.target), loop.body):
                part, call = source.enclosing(node, cst.Slice), source.enclosing(node, cst.Call)
                within = [one for one in (part, call) if one is not None]
                if not any(source.inside(size, one) for size in self.sized.nodes for one in within):
                    return False
        return True

    def _is_even(self) -> bool:
        """Whether no piece is smaller than the others: all rows are written, or were seen where they are
        cut."""
        source = self.step.source
        written = [(where, where.parent(node)) for node, where in self.sized.nodes.items()]
        rows = [(where, one.left) for where, one in written if isinstance(one, cst.BinaryOperation)]
        for node in self.taken:
            call = source.taking(node)
            if call is not None and source.is_named(call.func, "range") and len(call.args) > 1:
                rows.append((source, call.args[1].value))
        cut = {rows for rows in _cut_rows(self.context, source, self.taken) if rows > self.size}
        return cut == {self.number * self.size} or any(self._is_total(*one) for one in rows)


@dataclass(frozen=True, slots=True)
class _Loss:
    """What a loop computes its loss by. ``counts`` read the number of pieces, ``changing`` that or the number
    of their rows; ``sums``: the losses found that are sums over rows."""

    source: Source
    loop: cst.For
    counts: Collection[cst.BaseExpression]
    changing: Collection[cst.BaseExpression]
    sums: list[cst.Call]

    def degree(self, node: cst.BaseExpression | cst.AugAssign) -> int | None:
        """How often it is divided by the number of pieces, or weighted by the share of a piece in all rows;
        None where its terms differ in that."""
        node = self._bound(node)
        left, operator, right = _operands(node)
        if isinstance(operator, _ADDS):
            degrees = {self.degree(left), self.degree(right)}
            return degrees.pop() if len(degrees) == 1 else None
        if isinstance(node, cst.Call) and self.source.is_named(node.func, "scale") and node.args:
            return self.degree(node.args[0].value)  # a GradScaler's
        above, below = self._factors(node)
        inner = [self.degree(one) for one in above if one is not node]
        if None in inner:
            return None
        counted = sum(one in self.counts for one in below) - sum(one in self.counts for one in above)
        return counted + self._shares(above, below) + sum(one for one in inner if one is not None)

    def _bound(self, node: cst.BaseExpression | cst.AugAssign) -> cst.BaseExpression | cst.AugAssign:
        """What the last assignment before a name's use gives it; the node itself where there is none."""
        if not isinstance(node, cst.Name):
            return node
        source, start = self.source, self.source.span(node)[0]
        before = [
            one
            for one in source.bindings(node.value, source.scope(node))
            if source.span(one)[0] < start and source.statement(one) is not source.statement(node)
        ]
        above = source.parent(before[-1]) if before else None
        if isinstance(above, cst.AugAssign):
            return above
        given = source.given(before[-1]) if before else None
        return self._bound(given) if given is not None else node

    def _factors(
        self, node: cst.BaseExpression | cst.AugAssign
    ) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
        """What a product multiplies, and what it divides by."""
        bound = self._bound(node) if node not in self.counts else node
        left, operator, right = _operands(bound)
        divides = isinstance(operator, _DIVIDES)
        if not divides and not isinstance(operator, _MULTIPLIES):
            return [node] if isinstance(node, cst.BaseExpression) else [], []
        above, below = self._factors(left)
        more, less = self._factors(right)
        return (above + less, below + more) if divides else (above + more, below + less)

    def _shares(self, above: list[cst.BaseExpression], below: list[cst.BaseExpression]) -> int:
        """How many of the factors are the rows of the piece, or a sum over them, where it is divided by the
        same for all pieces."""
        source = self.source
        bound = {one.value for one in source.nodes(cst.Name, within=self.loop) if source.binds(one)}

        def varies(node: cst.CSTNode) -> bool:
            return any(one.value in bound for one in source.nodes(cst.Name, within=node))

        changing = [any(source.inside(one, node) for one in self.changing) for node in below]
        if not any(not varies(node) and not new for node, new in zip(below, changing, strict=True)):
            return 0
        rows = [one for node in above if (one := rows_of(source, node)) is not None and varies(one)]
        calls = [call for node in above if isinstance(call := self._bound(node), cst.Call)]
        sums = [call for call in calls if adds_up(source, call) and varies(call)]
        self.sums.extend(sums)
        return len(rows) + len(sums)


_ADDS = (cst.Add, cst.AddAssign, cst.Subtract, cst.SubtractAssign)
_DIVIDES = (cst.Divide, cst.DivideAssign)
_MULTIPLIES = (cst.Multiply, cst.MultiplyAssign)
_METHODS = {"div": cst.Divide(), "true_divide": cst.Divide(), "mul": cst.Multiply()}


def _operands(
    node: cst.BaseExpression | cst.AugAssign,
) -> tuple[cst.BaseExpression, cst.CSTNode | None, cst.BaseExpression]:
    """The sides of ``a / b``, ``a /= b`` or ``a.div(b)``, and what is between; twice the node for others."""
    if isinstance(node, cst.AugAssign):
        return node.target, node.operator, node.value
    if isinstance(node, cst.BinaryOperation):
        return node.left, node.operator, node.right
    left = receiver(node)
    if is_method(node, *_METHODS) and left is not None and len(node.args) == 1:
        return left, _METHODS[called_name(node)], node.args[0].value
    return node, None, node
