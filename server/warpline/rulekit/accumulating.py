"""Updates that add up the gradients of several batches: the number of them, and the size of each.

An update of 8 batches of 8 samples computes what one of 64 computes, up to rounding, where the loss of each
batch is divided by their number. Both numbers have to be written somewhere, and be read for nothing that
another pair with the same product changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.calling import below, function_of
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.frameworks import construction_call
from warpline.rulekit.loaders import loader_call, setting
from warpline.rulekit.origins import Origin, executes_text, option_names, origin, overridden, parameter_of
from warpline.rulekit.slicing import cuts_of, taken_sizes
from warpline.rulekit.training import TrainingStep, training_steps
from warpline.syntax.edits import Refused
from warpline.syntax.source import Source, is_method, methods
from warpline.wire.frameworks import constructions
from warpline.wire.sites import Framework, Loader, facts_of

#: A partial step more or less at the window's ends.
_TURN = 0.5
#: Frameworks whose users write the loop.
_IN_LOOPS = ("accelerate.Accelerator",)
_PRINTS = ("print", "info", "debug", "warning", "log")


@dataclass(frozen=True, slots=True)
class Parts:
    """``number`` equal batches of an update, each of ``size`` samples (0: what one batch is cut into).

    ``lines``: what runs once for each of them."""

    number: int
    count: Origin
    size: int
    rows: Origin | None
    lines: tuple[LineCost, ...]

    @property
    def first(self) -> Origin:
        """Where the edit begins: the size, else the number."""
        return self.rows if self.rows is not None else self.count

    def changed(self, context: Context, factor: int) -> Changes:
        """The edits by which an update takes ``factor`` times fewer batches, which are as much larger. Raises
        Refused."""
        changes = Changes(context)
        pairs = [(self.rows, self.size * factor), (self.count, self.number // factor)]
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
    or ``batch.chunk(n)``, by ``if i % n == 0: optimizer.step()`` or by accelerate.

    None where there is one, or where other numbers with the same product would not compute the same."""
    for step in training_steps(context):
        source = step.source
        loop = next(iter(source.loops(step.backward)), None)
        cost = context.cost(source.path, source.line(step.backward))
        if not isinstance(loop, cst.For) or cost is None or cost.calls < 1 + _TURN:
            continue
        found = _of_loop(context, step, loop, cost.calls)
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
    count = origin(context, *given, ends=is_whole)
    number = whole(context, count)
    if number is None or number < 2 or abs(calls - number) > _TURN:
        return None
    named = _Reads(context, count)
    # A framework divides the loss itself.
    if (written is not None and not _is_averaged(named, source, loop)) or _sums(context, step):
        return None
    if not _turns_alike(context, step, loop, named):
        return None
    lines = _lines(context, step, loop, calls, stepping=written is None)
    if pieces is not None and not _is_range(source, loop.iter):
        return Parts(number, count, 0, None, lines) if named.only_counts(loop, given[1], None) else None
    for rows, taken in chain(_of_loaders(context, source, loop), _of_slices(context, source, loop)):
        size = whole(context, rows)
        if size is None or size < 1 or not _is_seen(lines, size):
            continue
        sized = _Reads(context, rows)
        if named.only_counts(loop, given[1], sized) and sized.only_sizes(taken, named):
            return Parts(number, count, size, rows, lines)
    return None


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


def _turns_alike(context: Context, step: TrainingStep, loop: cst.For, named: _Reads) -> bool:
    """Whether the loop does the same in its turns but for the update: with fewer of them, their numbers and
    what is done once in each would mean something else."""
    source, counters = step.source, _counters(step.source, loop, named)
    for call in source.nodes(cst.Call, within=loop.body):
        if source.is_named(call.func, "step") and "sched" in source.code(call.func).lower():
            choice = source.enclosing(call, cst.If)
            if choice is None or not any(one in named for one in source.nodes(cst.Name, within=choice.test)):
                return False
    if not all(
        _length_alike(source, call, named)
        for call in source.nodes(cst.Call)
        if _is_length(source, call, loop)
    ):
        return False
    return all(
        _is_told(source, node) or _is_counted_off(source, node, named)
        for name in counters
        for node in source.reads(name, source.scope(loop))
        if context.reached.node(source, node) is not False
    )


def _is_length(source: Source, call: cst.Call, loop: cst.For) -> bool:
    """Whether it is the number of batches: of what the loop goes over, or of a loader by its name."""
    if source.name(call.func) != "len" or not call.args:
        return False
    named = source.code(call.args[0].value)
    over = source.nodes(cst.Name, cst.Attribute, within=loop.iter)
    return "loader" in named.lower() or named in [source.code(one) for one in over]


def _length_alike(source: Source, call: cst.Call, named: _Reads) -> bool:
    """Whether fewer batches change nothing there: the last is asked for, a sum over all is divided by it, or
    it is divided by how many an update has."""
    if (
        _is_told(source, call)
        or _is_divisor(source, call)
        or source.enclosing(call, cst.Comparison) is not None
    ):
        return True
    above = source.parent(call)
    while isinstance(above, cst.BinaryOperation):
        if above.right in named and isinstance(above.operator, (cst.Divide, cst.FloorDivide)):
            return True
        above = source.parent(above)
    return False


def _counters(source: Source, loop: cst.For, named: _Reads) -> set[str]:
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


def _is_counted_off(source: Source, node: cst.Name, named: _Reads) -> bool:
    """Whether the number of a turn only says which part of the update it is, or whether it is the last."""
    for outer in source.ancestors(node):
        if isinstance(outer, (cst.BinaryOperation, cst.Comparison)):
            inner = source.nodes(cst.Name, cst.Attribute, cst.Subscript, within=outer)
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
    """Whether a condition only has something printed."""
    choice = source.enclosing(test, cst.If)
    if choice is None or not source.inside(test, choice.test) or choice.orelse is not None:
        return False
    body = choice.body
    small = list(body.body) if isinstance(body, cst.SimpleStatementSuite) else []
    for line in body.body if isinstance(body, cst.IndentedBlock) else ():
        small += line.body if isinstance(line, cst.SimpleStatementLine) else [cst.Pass()]
    return all(
        isinstance(one, cst.Expr)
        and isinstance(one.value, cst.Call)
        and source.is_named(one.value.func, *_PRINTS)
        for one in small
    )


def _sums(context: Context, step: TrainingStep) -> bool:
    """Whether the loss of a batch may be a sum over its samples, as far as the text says: that of a larger
    batch is larger."""
    words = {"reduction": ("mean", "none"), "size_average": (True, None)}
    for _, call in context.calls():
        for arg in call.args:
            name = arg.keyword.value if arg.keyword is not None else ""
            if name in words and step.source.literal(arg.value) not in words[name]:
                return True
    source = step.source
    called = {_word(source, call.func) for one in step.forward for call in source.nodes(cst.Call, within=one)}
    functions = [one for one in source.nodes(cst.FunctionDef) if one.name.value in called]
    return any(
        _sums_all(source, call)
        for outer in (*step.forward, *functions)
        for call in source.nodes(cst.Call, within=outer)
    )


def _sums_all(source: Source, call: cst.Call) -> bool:
    """Whether it adds up all that a tensor has, and not what is along some dimensions."""
    if source.name(call.func) == "torch.sum":
        return len(call.args) == 1
    return is_method(call, "sum") and not call.args


def _counted(source: Source, loop: cst.For) -> cst.BaseExpression | None:
    """The number of turns: of ``range(n)``, or of pieces of one batch (``x.chunk(n)``)."""
    over = loop.iter
    if isinstance(over, cst.Call) and _is_range(source, over):
        return over.args[0].value if len(over.args) == 1 and not over.args[0].star else None
    cuts = cuts_of(source, over)
    if cuts is None or not cuts[1] or (len(cuts[0]) > 1 and isinstance(cuts[0][0], cst.Integer)):
        return None
    return cuts[0][0]


def _is_range(source: Source, over: cst.BaseExpression) -> bool:
    return isinstance(over, cst.Call) and source.is_named(over.func, "range")


def is_whole(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is a whole number, or a product of such, as ``5 * 8``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return is_whole(source, node.left) and is_whole(source, node.right)
    return isinstance(node, cst.Integer)


def whole(context: Context, found: Origin) -> int | None:
    """The number that is written there; None for anything else, and for a field that calls give another."""
    if found.kind == "field":
        held = _held(found)
        if any(source.argument(call, held) is not None for source, call in context.calls()):
            return None
    if found.kind == "unknown" or not is_whole(found.source, found.node):
        return None
    number = 1
    for one in found.source.nodes(cst.Integer, within=found.node):
        number *= ast.literal_eval(one.value)
    return number


def _set_by_word(context: Context, found: Origin) -> str | None:
    """The word of the command line, or the file it names, that may give a constant another value in a script
    that runs other code as its own."""
    if found.kind != "constant" or not executes_text(found.source):
        return None
    own = f"--{_held(found)}"
    words = context.profile.manifest.argv
    return next((word for word in words if word.split("=")[0] == own or word.endswith(".py")), None)


def _held(found: Origin) -> str:
    """The variable, field, option or keyword that is given the value; "" for none."""
    for node in found.source.ancestors(found.node):
        if isinstance(node, cst.Assign):
            return _word(found.source, node.targets[0].target)
        if isinstance(node, cst.AnnAssign):
            return _word(found.source, node.target)
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


def _word(source: Source, node: cst.CSTNode) -> str:
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
        if cost.calls > calls - _TURN and cost.line not in without
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
        if found is not None and whole(context, found) == facts_of(Loader, site).batch_size:
            where, call = loader_call(context, site)
            given = where.argument(call, "batch_size", 1)
            yield found, (given.value,) if given is not None else ()


def _of_slices(context: Context, source: Source, loop: cst.For) -> Iterator[_Taken]:
    """The sizes of batches that the loop takes from an iterator, or has a function draw."""
    made = [*_taken(source, loop), *_drawn(source, loop)]
    for sizes in made:
        found = origin(context, source, sizes[0], ends=is_whole)
        same = [
            node
            for node in sizes
            if node is sizes[0] or origin(context, source, node, ends=is_whole).node is found.node
        ]
        if len(same) == len(sizes):
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
            if not source.is_named(call.func, "torch.randint"):
                continue
            given = source.argument(call, "size") or next(
                (arg for arg in call.args[1:3] if isinstance(arg.value, (cst.Tuple, cst.List))), None
            )
            shape = given.value if given is not None else None
            if isinstance(shape, (cst.Tuple, cst.List)) and len(shape.elements) == 1:
                yield [shape.elements[0].value]


# -- what else reads the numbers ----------------------------------------------------------------


class _Reads:
    """All that reads a number, as far as the text says."""

    def __init__(self, context: Context, found: Origin) -> None:
        self._context, self.found = context, found
        self.nodes = {node: source for source, node in self._follow()}

    def _follow(self) -> Iterator[tuple[Source, cst.BaseExpression]]:
        """Reads under the name that it is written by, and under those that it is passed on by."""
        words, seen = [_held(self.found)], set[str]()
        if self.found.kind == "literal":
            yield self.found.source, self.found.node
        while words:
            word = words.pop()
            if not word or word in seen:
                continue
            seen.add(word)
            for source in self._context.sources():
                for node in source.nodes(cst.Name, cst.Attribute, cst.Subscript):
                    if _word(source, node) == word and self._is_read(source, node):
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
        return origin(self._context, source, node, ends=is_whole).node is self.found.node

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def only_counts(self, loop: cst.For, written: cst.BaseExpression, sizes: _Reads | None) -> bool:
        """Whether it is read for what fewer and larger batches do not change, or change with it. ``written``:
        what the update counts its batches by."""
        return all(
            node is written
            or source.inside(node, loop.iter)
            or _is_cycle(source, node)
            or _is_passed(self, source, node)
            or _is_divisor(source, node)
            or _is_last(source, node)
            or _is_told(source, node)
            or _in_product(source, node, sizes)
            or _in_product_of_loss(source, node)
            for node, source in self.nodes.items()
        )

    def only_sizes(self, taken: tuple[cst.BaseExpression, ...], counts: _Reads) -> bool:
        """The same of the number of rows. ``taken``: what the batches are cut by."""
        return all(
            node in taken
            or _is_passed(self, source, node)
            or _is_told(source, node)
            or _in_product(source, node, counts)
            for node, source in self.nodes.items()
        )


def _names(source: Source, node: cst.BaseExpression) -> list[str]:
    """What a number is called where this read passes it on: by an assignment, or as an argument."""
    above = source.parent(node)
    if isinstance(above, cst.Assign):
        return [_word(source, one.target) for one in above.targets]
    if isinstance(above, cst.AnnAssign):
        return [_word(source, above.target)]
    param = _param(source, node)
    return [param[0]] if param is not None else []


def _param(source: Source, node: cst.BaseExpression) -> tuple[str, cst.FunctionDef] | None:
    """The parameter of a function or class of this file that gets it, and that function."""
    arg = source.parent(node)
    call = source.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call) or arg.star:
        return None
    name = _word(source, call.func)
    made = [methods(one).get("__init__") for one in source.nodes(cst.ClassDef) if one.name.value == name]
    functions = [*source.functions(name), *(one for one in made if one is not None)]
    given = parameter_of(functions[0], arg, call) if len(functions) == 1 else None
    return (given, functions[0]) if given is not None else None


def _is_passed(reads: _Reads, source: Source, node: cst.BaseExpression) -> bool:
    """Whether all of its new name's reads are known to be of this number."""
    names, param = _names(source, node), _param(source, node)
    within = param[1] if param is not None else source.module
    return bool(names) and all(
        any(
            where is source and _word(where, one) == name and where.inside(one, within)
            for one, where in reads.nodes.items()
        )
        for name in names
    )


def _is_divisor(source: Source, node: cst.BaseExpression) -> bool:
    """Whether something is divided by it, as each loss: ``loss / n``, ``loss /= n``, ``loss.div(n)``."""
    above = source.parent(node)
    if isinstance(above, cst.BinaryOperation):
        return above.right is node and isinstance(above.operator, (cst.Divide, cst.FloorDivide))
    if isinstance(above, cst.AugAssign):
        return above.value is node and isinstance(above.operator, cst.DivideAssign)
    call = source.parent(above) if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and source.is_named(call.func, "div", "div_", "true_divide")


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


def _is_told(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is only printed."""
    if source.enclosing(node, cst.FormattedStringExpression) is not None:
        return True
    above = source.parent(node)
    call = source.parent(above) if isinstance(above, cst.Arg) else None
    return isinstance(call, cst.Call) and source.is_named(call.func, *_PRINTS)


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


def _in_product(source: Source, node: cst.BaseExpression, others: _Reads | None) -> bool:
    """Whether it is multiplied by the other number: the samples of an update."""
    whole = _factors_around(source, node)
    if others is None or whole is node:
        return False
    inner = source.nodes(cst.Name, cst.Attribute, cst.Subscript, within=whole)
    return any(one in others and _factors_around(source, one) is whole for one in inner)


def _in_product_of_loss(source: Source, node: cst.BaseExpression) -> bool:
    """Whether a part's loss is multiplied by it, as ``loss.item() * n``, to undo the division."""
    whole = _factors_around(source, node)
    calls = source.nodes(cst.Call, within=whole)
    return whole is not node and any(source.is_named(call.func, "item", "detach") for call in calls)


def _is_averaged(reads: _Reads, source: Source, loop: cst.For) -> bool:
    """Whether the loop divides by the number of its turns, or multiplies by what was divided by it."""
    for node, where in reads.nodes.items():
        inside = where is source and source.inside(node, source.scope(loop))
        if not inside or not _is_divisor(source, node):
            continue
        above = source.parent(node)
        one = isinstance(above, cst.BinaryOperation) and source.literal(above.left) in (1, 1.0)
        if source.inside(node, loop) or one:
            return True
    return False
