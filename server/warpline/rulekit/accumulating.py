"""Updates that add up the gradients of several batches: the number of them, and the size of each.

An update of 8 batches of 8 samples computes what one of 64 computes, up to rounding, where the loss of each
batch is divided by their number. Both numbers have to be written somewhere, and be read for nothing that
another pair with the same product changes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.batch_pieces import TURN, lengths_of, only_gone_over, pieces_of
from warpline.rulekit.calling import below, function_of
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.drawn import drawn_size
from warpline.rulekit.frameworks import construction_call
from warpline.rulekit.loaders import loader_call, setting
from warpline.rulekit.number_reads import (
    PRINTS,
    READS,
    Reads,
    fitting,
    held_as,
    is_averaged,
    is_divisor,
    is_number,
    is_told,
    last_word,
    whole,
)
from warpline.rulekit.origins import Origin, executes_text, only_value, origin, overridden
from warpline.rulekit.row_relations import (
    adds_up,
    carries_over,
    reduces_otherwise,
    relates_rows,
    touches_gradients,
)
from warpline.rulekit.slicing import cuts_of, taken_sizes
from warpline.rulekit.terms import descend
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source
from warpline.wire.frameworks import constructions
from warpline.wire.sites import Framework, Loader, facts_of

#: Frameworks whose users write the loop.
_IN_LOOPS = ("accelerate.Accelerator",)


@dataclass(frozen=True, slots=True)
class Parts:
    """``number`` equal batches of an update, each of ``size`` samples (0: what one batch is cut into).

    ``lines``: what runs once for each of them; ``again``: the size written out once more; ``count`` is None
    where the number follows from the size."""

    number: int
    count: Origin | None
    size: int
    rows: Origin | None
    lines: tuple[LineCost, ...]
    again: tuple[Origin, ...] = ()

    @property
    def place(self) -> tuple[str, int]:
        """Where the edit begins: the size, else the number."""
        first = self.rows or self.count
        assert first is not None
        return first.place

    def changed(self, context: Context, factor: int) -> Changes:
        """The edits by which an update takes ``factor`` times fewer batches, which are as much larger. Raises
        Refused."""
        changes = Changes(context)
        sizes = ((found, self.size * factor) for found in (self.rows, *self.again))
        pairs = [*sizes, (self.count, self.number // factor)]
        for found, value in pairs:
            if found is None:
                continue
            word = overridden(context, found) or _set_by_word(context, found)
            if word is not None:
                raise Refused(f"the command line passes `{word}`: change it there")
            changes.of(found.source).replace(found.node, str(value))
        return changes


def parts_of(context: Context) -> Parts | None:
    """What the steps' backward passes are of: several batches of one update, counted by a loop's ``range(n)``
    or ``batch.chunk(n)``, cut by their size, counted by ``if i % n == 0: optimizer.step()`` or by accelerate.

    None where there is one, or where other numbers with the same product would not compute the same."""
    for step in training_steps(context):
        source = step.source
        loop = next(iter(source.loops(step.backward)), None)
        cost = context.cost(source.path, source.line(step.backward))
        if not isinstance(loop, cst.For) or cost is None or cost.calls < 1 + TURN:
            continue
        found = _of_loop(context, step, loop, cost.calls) or _of_pieces(context, step, loop, cost.calls)
        if found is not None:
            return found
    return None


def _of_loop(context: Context, step: TrainingStep, loop: cst.For, calls: float) -> Parts | None:
    source = step.source
    pieces = _counted(source, loop)
    written = pieces or accumulated_every(step)
    given = (source, written) if written is not None else _of_framework(context)
    if given is None:
        return None
    counted = origin(context, *given, ends=is_number)
    fit = fitting(context, counted, lambda number: number > 1 and abs(calls - number) <= TURN)
    if fit is None:
        return None
    named, (count, number) = Reads(context, counted), fit
    cuts = cuts_of(source, loop) if pieces is not None and not _is_range(source, loop.iter) else None
    lengths = lengths_of(source, loop, cuts[0]) if cuts is not None else []
    averaged = is_averaged(named, source, loop) or any(is_divisor(source, one) for one in lengths)
    # A framework divides the loss itself.
    if (written is not None and not averaged) or _sums(context, step):
        return None
    if not _turns_alike(context, step, loop, named):
        return None
    lines = _lines(context, step, loop, calls, stepping=written is None)
    if pieces is not None and touches_gradients(source, loop):
        return None
    if relates_rows(context, lines) or carries_over(source, loop, step.loss):
        return None
    if cuts is not None:
        same = named.only_counts(loop, given[1], None) and only_gone_over(source, loop, cuts[0])
        return Parts(number, count, 0, None, lines) if same else None
    for rows, taken in chain(_of_loaders(context, source, loop), _of_slices(context, source, loop)):
        row = fitting(context, rows, lambda size: size > 0 and _is_seen(lines, size))
        sized = Reads(context, rows)
        if row and named.only_counts(loop, given[1], sized) and sized.only_sizes(taken, named):
            return Parts(number, count, row[1], row[0], lines)
    return None


def _of_pieces(context: Context, step: TrainingStep, loop: cst.For, calls: float) -> Parts | None:
    """Where one batch is cut into pieces, whose size is written."""
    source, number = step.source, round(calls)
    lines = _lines(context, step, loop, calls, stepping=False)
    cut = pieces_of(context, step, loop, number, partial(_is_seen, lines))
    if (
        cut is None
        or touches_gradients(source, loop)
        or relates_rows(context, lines)
        or carries_over(source, loop, step.loss)
        or _sums(context, step, cut.sums)
        or not _only_counted_off(context, source, loop, cut.reads)
    ):
        return None
    return Parts(number, cut.count, cut.size, cut.rows, lines, cut.again)


def accumulated_every(step: TrainingStep) -> cst.BaseExpression | None:
    """The ``n`` of ``if (i + 1) % n == 0: optimizer.step()``."""
    source = step.source
    for call in source.nodes(cst.Call):
        choice = source.enclosing(call, cst.If) if source.is_named(call.func, "step") else None
        for node in source.nodes(cst.BinaryOperation, within=choice.test) if choice is not None else ():
            if isinstance(node.operator, cst.Modulo):
                return node.right
    return None


def _of_framework(context: Context) -> tuple[Source, cst.BaseExpression] | None:
    """The number of batches of an update that the script passes to a framework. The framework then divides
    each loss by it, and steps the optimizer once per update."""
    for one in constructions():
        for site in context.sites("framework") if one.accumulates and one.key in _IN_LOOPS else ():
            if facts_of(Framework, site).construction == one.key:
                found = construction_call(context, site, one)
                arg = found[0].argument(found[1], one.accumulates) if found is not None else None
                if found is not None and arg is not None:
                    return found[0], arg.value
    return None


def _turns_alike(context: Context, step: TrainingStep, loop: cst.For, named: Container[object]) -> bool:
    """Whether the loop does the same in its turns but for the update: with fewer of them, their numbers and
    what is done once in each would mean something else."""
    source = step.source
    for call in source.nodes(cst.Call, within=loop.body):
        if source.is_named(call.func, "step") and "sched" in source.code(call.func).lower():
            choice = source.enclosing(call, cst.If)
            reads = source.nodes(*READS, within=choice.test) if choice is not None else []
            if not any(one in named for one in reads):
                return False
    lengths = [call for call in source.nodes(cst.Call) if _is_length(source, call, loop)]
    alike = all(_length_alike(source, call, named) for call in lengths)
    return alike and _only_counted_off(context, source, loop, named)


def _only_counted_off(context: Context, source: Source, loop: cst.For, named: Container[object]) -> bool:
    """Whether the number of a turn only says which part of the update it is."""
    return all(
        is_told(source, node) or _is_counted_off(source, node, named)
        for name in _counters(source, loop, named)
        for node in source.reads(name, source.scope(loop))
        if context.reached.node(source, node) is not False
    )


def _is_length(source: Source, call: cst.Call, loop: cst.For) -> bool:
    """Whether it is the number of batches: of what the loop goes over, or of a loader by its name."""
    if source.name(call.func) != "len" or not call.args or source.inside(call, loop.iter):
        return False
    named = source.code(call.args[0].value)
    over = source.nodes(cst.Name, cst.Attribute, within=loop.iter)
    return "loader" in named.lower() or named in [source.code(one) for one in over]


def _length_alike(source: Source, call: cst.Call, named: Container[object]) -> bool:
    """Whether fewer batches change nothing there: the last is asked for, a sum over all is divided by it, or
    it is divided by how many an update has."""
    above = source.parent(call)
    if isinstance(above, cst.Assign) and isinstance(name := above.targets[0].target, cst.Name):
        reads = source.reads(name.value, source.scope(call))
        return len(above.targets) == 1 and all(_fewer_alike(source, one, named) for one in reads)
    return _fewer_alike(source, call, named)


def _fewer_alike(source: Source, node: cst.BaseExpression, named: Container[object]) -> bool:
    """The same of ``node``, which is the number of batches."""
    compared = source.enclosing(node, cst.Comparison) is not None
    if compared or is_told(source, node) or is_divisor(source, node):
        return True
    above = source.parent(node)
    while isinstance(above, cst.BinaryOperation):
        if above.right in named and isinstance(above.operator, (cst.Divide, cst.FloorDivide)):
            return True
        above = source.parent(above)
    return False


def _counters(source: Source, loop: cst.For, named: Container[object]) -> set[str]:
    """The names of the number of a turn."""
    over, target = loop.iter, loop.target
    found: list[cst.BaseExpression] = []
    if _is_range(source, over):
        found = [target] if len(getattr(over, "args", ())) == 1 else []
    elif isinstance(over, cst.Call) and source.is_named(over.func, "enumerate"):
        found = [target.elements[0].value] if isinstance(target, cst.Tuple) else []
    for node in source.nodes(cst.BinaryOperation, within=loop.body):
        if isinstance(node.operator, cst.Modulo) and node.right in named:
            found += source.nodes(cst.Name, within=node.left)
    return {one.value for one in found if isinstance(one, cst.Name)}


def _is_counted_off(source: Source, node: cst.Name, named: Container[object]) -> bool:
    """Whether the number of a turn only says which part of the update it is, or whether it is the last."""
    for outer in source.ancestors(node):
        if isinstance(outer, (cst.BinaryOperation, cst.Comparison)):
            inner = source.nodes(*READS, within=outer)
            calls = source.nodes(cst.Call, within=outer)
            if any(one in named for one in inner) or any(source.is_named(one.func, "len") for one in calls):
                return True
            if isinstance(outer, cst.Comparison):
                first = outer.left is node and source.literal(outer.comparisons[0].comparator) == 0
                return first or _only_tells(source, outer)
        elif isinstance(outer, (cst.SimpleStatementLine, cst.IndentedBlock)):
            return False
    return False


def _only_tells(source: Source, test: cst.Comparison) -> bool:
    """Whether a condition only has something printed, and what was added up for that begin again."""
    choice = source.enclosing(test, cst.If)
    if choice is None or not source.inside(test, choice.test) or choice.orelse is not None:
        return False
    tested = {one.value for one in source.nodes(cst.Name, within=test)}

    def tells(one: cst.CSTNode) -> bool:
        if isinstance(one, cst.Assign):
            (name, *others) = (target.target for target in one.targets)
            again = isinstance(name, cst.Name) and name.value not in tested and not others
            return again and source.literal(one.value) == 0
        call = one.value if isinstance(one, cst.Expr) else None
        return isinstance(call, cst.Call) and source.is_named(call.func, *PRINTS)

    return all(map(tells, descend(choice.body, cst.BaseSmallStatement, cst.BaseCompoundStatement)))


def _sums(context: Context, step: TrainingStep, but: Container[cst.Call] = ()) -> bool:
    """Whether the loss of a batch may be a sum over its samples, as far as the text says: that of a larger
    batch is larger. ``but``: sums that are known to be divided by the same for all batches."""
    if any(reduces_otherwise(source, call) and call not in but for source, call in context.calls()):
        return True
    source = step.source
    called = {
        last_word(source, call.func) for one in step.forward for call in source.nodes(cst.Call, within=one)
    }
    functions = [one for one in source.nodes(cst.FunctionDef) if one.name.value in called]
    return any(
        adds_up(source, call) and call not in but
        for outer in (*step.forward, *functions)
        for call in source.nodes(cst.Call, within=outer)
    )


def _counted(source: Source, loop: cst.For) -> cst.BaseExpression | None:
    """The number of turns: of ``range(n)``, or of pieces of one batch (``x.chunk(n)``)."""
    over = loop.iter
    if isinstance(over, cst.Call) and _is_range(source, over):
        return over.args[0].value if len(over.args) == 1 and not over.args[0].star else None
    cuts = cuts_of(source, loop)
    if cuts is None or not cuts[1] or (len(cuts[0]) > 1 and isinstance(cuts[0][0], cst.Integer)):
        return None
    return cuts[0][0]


def _is_range(source: Source, over: cst.BaseExpression) -> bool:
    return isinstance(over, cst.Call) and source.is_named(over.func, "range")


def _set_by_word(context: Context, found: Origin) -> str | None:
    """The word of the command line, or the file it names, that may give a constant another value in a script
    that runs other code as its own."""
    if found.kind != "constant" or not executes_text(found.source):
        return None
    own = f"--{held_as(found)}"
    words = context.profile.manifest.argv
    return next((word for word in words if word.split("=")[0] == own or word.endswith(".py")), None)


def _lines(
    context: Context, step: TrainingStep, loop: cst.For, calls: float, *, stepping: bool
) -> tuple[LineCost, ...]:
    """The lines of a loop that run in each of its turns, and what they call. ``stepping``: the optimizer is
    called in each turn, too, and a framework has it wait.

    Lines that wait for a loader are left out, and what computes nothing on the device, as a function that
    makes a batch in the host's memory: larger ones take longer there."""
    source = step.source
    steps = [call for call in source.nodes(cst.Call, within=loop) if source.is_named(call.func, "step")]
    without = {source.line(call) for call in steps} if stepping else set()
    within = [
        cost
        for cost in context.costs_of(source, loop.body)
        if cost.calls > calls - TURN and cost.line not in without
    ]
    computing = {cost for cost in context.profile.lines if cost.device_ms > cost.copy_ms}
    functions = {function_of(cost) for cost in computing} - {function_of(cost) for cost in within}
    back = source.place(step.backward)
    found = {line.place: line for cost in within for line in below(context, cost) if not line.loader_ms}
    return tuple(
        line
        for line in found.values()
        if line in computing or line.place == back or function_of(line) in functions
    )


def _is_seen(lines: tuple[LineCost, ...], size: int) -> bool:
    """Whether the steps had tensors with so many rows."""
    return any(shape[:1] == (size,) for cost in lines for op in cost.ops for shape in op.shapes)


# -- the size of a batch ------------------------------------------------------------------------

_Taken = tuple[Origin, tuple[cst.BaseExpression, ...]]  # with what the size is read for


def _of_loaders(context: Context, source: Source, loop: cst.For) -> Iterator[_Taken]:
    """The sizes of loaders from which the loop takes a batch in each turn."""
    for site in context.sites("loader"):
        if not any(file == source.path and line in source.extent(loop) for file, line in site.uses):
            continue
        found = setting(context, site, "batch_size")
        where, call = loader_call(context, site)
        sampler = where.argument(call, "batch_sampler")
        if found is not None and whole(context, found) == facts_of(Loader, site).batch_size:
            given = where.argument(call, "batch_size", 1)
            yield found, (given.value,) if given is not None else ()
        elif sampler is not None:
            made = only_value(context, where, sampler.value) or (where, sampler.value)
            for arg in made[1].args if isinstance(made[1], cst.Call) else ():
                yield origin(context, made[0], arg.value, ends=is_number), (arg.value,)


def _of_slices(context: Context, source: Source, loop: cst.For) -> Iterator[_Taken]:
    """The sizes of batches that the loop takes from an iterator, or has a function draw."""
    made = [*_taken(source, loop), *_drawn(source, loop)]
    for sizes in made:
        found, *others = (origin(context, source, node, ends=is_number) for node in sizes)
        if all(one.node is found.node for one in others):
            yield found, tuple(sizes)


def _taken(source: Source, loop: cst.For) -> Iterator[list[cst.BaseExpression]]:
    own = taken_sizes(source, loop, loop.iter)
    if own:
        yield own
    for call in source.nodes(cst.Call, within=loop.body):
        if source.name(call.func) == "next" and call.args:
            found = taken_sizes(source, loop, call.args[0].value)
            if found:
                yield found


def _drawn(source: Source, loop: cst.For) -> Iterator[list[cst.BaseExpression]]:
    """The ``size`` of ``torch.randint(…, (size,))`` in the loop or in a function that it calls."""
    called = {source.name(call.func) for call in source.nodes(cst.Call, within=loop.body)}
    functions = [one for one in source.nodes(cst.FunctionDef) if one.name.value in called]
    for outer in (loop.body, *functions):
        for call in source.nodes(cst.Call, within=outer):
            size = drawn_size(source, call) if source.is_named(call.func, "torch.randint") else None
            if size is not None:
                yield [size]
