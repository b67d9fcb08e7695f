"""Edits that read a value later (after the loop, where it is told now and then, every N steps), or leave it
on the device."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Applicability, Fix
from warpline.rulekit.context import Context
from warpline.rulekit.meters import ARITHMETIC, is_formatted, made_once, meter_of, reads
from warpline.rulekit.origins import parameter_of
from warpline.rulekit.terms import atom
from warpline.rulekit.waiting import READS, USUAL, counter, read_call
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, appended, called_name, is_method
from warpline.wire.sites import Sync, facts_of

#: Operators that bring a value to the host.
READ_OPS = ("aten::item", "aten::_local_scalar_dense")
#: Calls that only tell somebody a value; others (a running average) may need each of them.
_TELLS = (
    "print", "write", "info", "debug", "warning", "log", "log_metrics", "log_dict", "log_scalar", "echo",
    "add_scalar", "add_scalars", "set_postfix", "set_postfix_str", "set_description", "set_description_str",
    "writerow", "track", "report",
)  # fmt: skip
#: Methods, and functions of torch, whose result is one bit.
_ONE_BIT = ("all", "any")
_USED = "the value is used on the host in every step"
_SELDOM = "Read the value only every N steps"
#: Python's ``min`` and ``max`` of a tensor and another one, or a number, wait for a comparison. For each:
#: torch's function of two tensors, what ``clamp`` calls a bound that may be a number, and the operator that
#: compares the first value, a tensor, with the second, a number. Else the second is compared with the first.
_OF_TORCH = {"min": ("minimum", "max", "gt"), "max": ("maximum", "min", "lt")}
#: What else may ask whether something is true.
_ASKING = (cst.IfExp, cst.BooleanOperation, cst.Not, cst.Comparison, cst.CompIf)


def read_later(context: Context, cost: LineCost, behind: Iterable[LineCost] = ()) -> Fix:
    """A fix for the value that the line of ``cost`` reads in each step, and for those that lines ``behind``
    it read, as far as that can be edited alike: they would wait in its place. Raises Refused."""
    edits = Edits(context.source(cost.file))
    title, applicability = _later(context, edits, cost)
    for other in behind:
        more = Edits(edits.source)
        try:
            done, also = _later(context, more, other)
        except Refused:
            continue
        if done == _SELDOM and title != _SELDOM:
            continue  # what it prints would be gone, which the title does not say
        edits.join(more)
        applicability = also if also == "unsafe" else applicability
    return edits.fix(title, applicability)


def _later(context: Context, edits: Edits, cost: LineCost) -> tuple[str, Applicability]:
    """Writes the changes for the line of ``cost``; what they do, and how safe they are. Raises Refused."""
    source = edits.source
    call = read_call(source, cost.line)
    checked = _asserted(source, cost.line)
    if checked is not None:
        return _on_device(edits, *checked)
    extreme = compared(context, source, cost)
    if extreme is not None:
        chosen_there(edits, extreme, cost)
        return "Let the device choose", "unsafe"
    if call is None:
        raise Refused("the wait is not a plain `.item()` or `.cpu()`")
    statement = source.statement(call)
    loops = source.loops(call)
    if statement is None or not loops:
        raise Refused("the value is not read in a loop of this function")
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Refused("the program branches on the value")
    small = statement.body[0]
    if is_method(call, "item") and isinstance(small, (cst.AugAssign, cst.Assign)):
        return _sum(context, edits, call, small, cost)
    if isinstance(small, cst.Expr):
        outer = small.value
        if is_method(outer, "append") and is_method(call, "item"):
            return _list(edits, call, outer, _whole(cost))
        if not isinstance(outer, cst.Call) or not source.is_named(outer.func, *_TELLS):
            if isinstance(outer, cst.Call) and is_method(call, "item"):
                done = _metered(context, edits, call, outer, cost)
                if done is not None:
                    return done
            name = source.code(outer.func) if isinstance(outer, cst.Call) else "what it is given to"
            raise Refused(
                f"`{name}` may need each value: pass `.detach()`, accumulate on the device, and read "
                "it after the loop"
            )
        return _every_so_often(edits, statement)
    raise Refused(_USED)


def _asserted(source: Source, line: int) -> tuple[cst.Assert, cst.Call, bool] | None:
    """An ``assert`` on the line of one bit that torch computes: the call that does, and whether it is to be
    false. None where it may be something else, such as one of several conditions."""
    for check in source.at(line, cst.Assert):
        assert isinstance(check, cst.Assert)
        test, negated = check.test, False
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, negated = test.expression, not negated
        if isinstance(test, cst.Call) and is_method(test, "item") and isinstance(test.func, cst.Attribute):
            test = test.func.value
        if not isinstance(test, cst.Call) or not is_method(test, *_ONE_BIT):
            continue
        if not any(is_method(call, *READS) for call in source.nodes(cst.Call, within=test)):
            return check, test, negated
    return None


def _on_device(edits: Edits, check: cst.Assert, test: cst.Call, negated: bool) -> tuple[str, Applicability]:
    source = edits.source
    if check.msg is not None and not isinstance(source.literal(check.msg), str):
        raise Refused("the message of the `assert` would be made in each step: use a fixed text")
    torch = edits.add_import("torch", "import torch")
    said = "" if check.msg is None else f", {source.code(check.msg)}"
    edits.replace(check, f"{torch}._assert_async({'~' if negated else ''}{source.code(test)}{said})")
    return "Let the device check it", "unsafe"


def _sum(
    context: Context, edits: Edits, call: cst.Call, small: cst.AugAssign | cst.Assign, cost: LineCost
) -> tuple[str, Applicability]:
    """For ``total += loss.item()``, and a mean as ``mean = 0.9 * mean + 0.1 * loss.item()``."""
    source = edits.source
    target = small.target if isinstance(small, cst.AugAssign) else small.targets[0].target
    operators = arithmetic(source, call, small.value)
    if not isinstance(target, cst.Name) or operators is None:
        raise Refused(_USED)
    again = source.uses(target.value, small.value)
    if isinstance(small, cst.Assign):
        if not again or len(small.targets) != 1:
            raise Refused(_USED)
    elif not isinstance(small.operator, cst.AddAssign):
        raise Refused("only sums can be accumulated on the device without changing their bits")
    for one in again:
        mixed = arithmetic(source, one, small.value)
        if mixed is None:
            raise Refused(_USED)
        operators += mixed
    divides = any(isinstance(one, cst.Divide) for one in operators)
    name, loop = target.value, _loop_of(source, small)
    uses = source.uses(name, source.scope(small))
    begins = [source.literal(source.given(one)) for one in uses if source.binds(one) and one is not target]
    real = float in map(type, begins)
    counts = _whole(cost)
    whole = counts and not operators and not real
    told = _told(context, source, name, small, cost)
    # In double precision a sum has the bits that Python's own would have.
    edits.replace(call, _receiver(source, call) + (".detach()" if whole else ".detach().double()"))
    read = f"{'int' if whole else 'float'}({name})"
    for node in told:
        context.reached.keep(source, node)
        edits.replace(node, read)
    if not told or _read_outside(source, name, loop):
        edits.insert_after(loop, f"{name} = {read}")
    # Of integers, a whole number becomes 3.0. A GPU multiplies by the inverse of what it divides by.
    integers = counts or not _types(cost)
    safe = whole or (not divides and (real or not integers))
    where = "where it is told" if told else "once after the loop"
    return f"Accumulate on the device and read {where}", "safe" if safe else "unsafe"


def arithmetic(source: Source, node: cst.CSTNode, whole: cst.CSTNode) -> list[cst.BaseBinaryOp] | None:
    """The operators between ``node`` and the expression ``whole`` that it is a part of, innermost first, None
    where it is anything but a sum, a difference, a product, a quotient or a square."""
    found: list[cst.BaseBinaryOp] = []
    while node is not whole:
        above = source.parent(node)
        if not isinstance(above, cst.BinaryOperation):
            return None
        square = isinstance(above.operator, cst.Power) and source.literal(above.right) == 2
        if not isinstance(above.operator, ARITHMETIC) and not square:
            return None
        found.append(above.operator)
        node = above
    return found


def _metered(
    context: Context, edits: Edits, call: cst.Call, outer: cst.Call, cost: LineCost
) -> tuple[str, Applicability] | None:
    """The same for a meter that gets the value, ``losses.update(loss.item(), n)``: it is read where it is
    told. None where it is not known what it is."""
    source = edits.source
    meter, arg = outer.func, next(arg for arg in outer.args if source.inside(call, arg))
    if not isinstance(meter, cst.Attribute) or not isinstance(meter.value, cst.Name):
        return None
    made = made_once(context, source, meter.value)
    operators = arithmetic(source, call, arg.value)
    if made is None or operators is None:
        return None
    scope, where, owner = made
    kind = meter_of(where, owner, meter.attr.value, lambda method: parameter_of(method, arg, outer))
    if _whole(cost) and not any(isinstance(one, cst.Divide) for one in operators):
        raise Refused("the value is a whole number, and would not be one on the device")
    loop, name = source.loops(call)[0], meter.value.value
    for read in reads(context, source, meter.value, scope, kind):
        node = read.node
        if source.inside(node, loop) and (
            not now_and_then(context, source, node, loop, cost) or names_itself(source, node)
        ):
            raise Refused(f"`{name}` is also read inside the loop")
        if read.bare and not is_formatted(source, node):
            context.reached.keep(source, node)
            edits.replace(node, f"float({source.code(node)})")  # 0 of a meter without values becomes 0.0
    # A copy, if the value is changed later, and without dimensions: format shows no others as a number.
    ops = [op for op in cost.ops if op.name in READ_OPS]
    alone = bool(ops) and all(op.shapes[:1] == ((),) for op in ops)
    copied = ".clone()" if any("double" in name for name in _types(cost)) else ".double()"
    edits.replace(call, _receiver(source, call) + ".detach()" + ("" if alone else ".squeeze()") + copied)
    # Its sums have the same bits, but a GPU multiplies by the inverse of what it divides by.
    return "Keep the value on the device until it is told", "unsafe"


def _list(edits: Edits, call: cst.Call, outer: cst.BaseExpression, whole: bool) -> tuple[str, Applicability]:
    source = edits.source
    pieces, value = appended(outer) or (None, None)
    if not isinstance(pieces, cst.Name) or value is not call:
        raise Refused(_USED)
    name, loop = pieces.value, _loop_of(source, outer)
    if any(not source.inside(read, outer) for read in source.uses(name, loop)):
        raise Refused(f"`{name}` is also read inside the loop")
    # A copy: later steps may write into the same tensor, as the replay of a CUDA graph does.
    edits.replace(call, _receiver(source, call) + ".detach().clone()")
    edits.insert_after(loop, f"{name}[:] = [{'int' if whole else 'float'}(value) for value in {name}]")
    return "Keep the values on the device and read them after the loop", "safe"


def _whole(cost: LineCost) -> bool:
    """Whether the value that is read is an integer, by its recorded type."""
    types = _types(cost)
    return bool(types) and all("int" in name or "bool" in name for name in types)


def _types(cost: LineCost) -> list[str]:
    return [op.dtypes[0] for op in cost.ops if op.name in READ_OPS and op.dtypes]


def _loop_of(source: Source, use: cst.CSTNode) -> cst.For | cst.While:
    """The innermost loop around ``use``, provided that the function does not return from it."""
    loop = source.loops(use)[0]
    if source.nodes(cst.Return, within=loop):
        raise Refused("the function may return from inside the loop")
    return loop


def _told(context: Context, source: Source, name: str, use: cst.CSTNode, cost: LineCost) -> list[cst.Name]:
    """Where ``name``, which ``use`` adds to, is read inside the loop now and then. Raises Refused where it is
    read in each round, or given anything but a number."""
    loop, told = source.loops(use)[0], list[cst.Name]()
    for node in source.uses(name, loop):
        if source.inside(node, use):
            continue
        if source.binds(node):
            if isinstance(source.literal(source.given(node)), (int, float)):
                continue  # a new sum begins
            raise Refused(f"`{name}` is also changed inside the loop")
        if not now_and_then(context, source, node, loop, cost) or names_itself(source, node):
            raise Refused(f"`{name}` is also read inside the loop")
        told.append(node)
    called = {called_name(call) for call in source.nodes(cst.Call, within=loop)}
    for function in source.nodes(cst.FunctionDef):
        if (
            function.name.value in called
            and not source.inside(loop, function)
            and source.uses(name, function)
        ):
            raise Refused(f"`{function.name.value}` has a `{name}` as well, and is called inside the loop")
    return told


def names_itself(source: Source, node: cst.CSTNode) -> bool:
    """Whether ``node`` is in an ``f"{total=}"``, which shows its text."""
    shown = source.enclosing(node, cst.FormattedStringExpression)
    return shown is not None and shown.equal is not None


def now_and_then(
    context: Context, source: Source, node: cst.CSTNode, loop: cst.For | cst.While, cost: LineCost
) -> bool:
    """Whether ``node`` stands below an ``if`` in the loop that seldom holds: of the rounds of ``cost``'s line
    fewer ran it than make a wait usual."""
    within = (outer for outer in source.ancestors(node) if source.inside(outer, loop))
    if not any(isinstance(outer, cst.If) and not source.inside(node, outer.test) for outer in within):
        return False
    statement = source.statement(node)
    if statement is None:
        return False
    lines = context.costs_within(source.path, source.line(statement), source.span(node)[1][0])
    return max((one.calls for one in lines), default=0.0) < USUAL * cost.calls


def _read_outside(source: Source, name: str, loop: cst.For | cst.While) -> bool:
    """Whether ``name`` may be read outside the loop: in its function, or anywhere if it is not local."""
    function = source.enclosing(loop, cst.FunctionDef)
    if function is None:
        return True
    if any(one.name.value == name for one in source.nodes(cst.NameItem, within=function)):
        return True  # global or nonlocal
    return not all(source.inside(one, loop) for one in source.reads(name, function))


def _receiver(source: Source, call: cst.Call) -> str:
    return source.code(cst.ensure_type(call.func, cst.Attribute).value)


def _every_so_often(edits: Edits, statement: Statement) -> tuple[str, Applicability]:
    source = edits.source
    found = counter(source, statement)
    if found is None:
        raise Refused("reading it only every N steps needs a counter, and the loop has none")
    if any(
        isinstance(outer, cst.If) for outer in source.ancestors(statement) if source.inside(outer, found[1])
    ):
        raise Refused("it is already read under a condition")
    edits.wrap([statement], f"if {found[0]} % 50 == 0:")
    return _SELDOM, "unsafe"


def compared(context: Context, source: Source, cost: LineCost) -> cst.Call | None:
    """The call of ``min`` or ``max`` that a line waits for, where that is all it waits for."""
    asked = {facts_of(Sync, site).what for site in context.sites(Sync.KIND) if site.place == cost.place}
    calls = [one for one in source.calls(cost.line) if source.name(one.func) in _OF_TORCH]
    statement = source.statement(calls[0]) if len(calls) == 1 else None
    if asked != {"bool"} or not isinstance(statement, cst.SimpleStatementLine):
        return None
    name = source.name(calls[0].func)
    own = any(one.value == name and source.binds(one) for one in source.nodes(cst.Name))
    plain = len(calls[0].args) == 2 and not any(arg.keyword or arg.star for arg in calls[0].args)
    return calls[0] if plain and not own and not source.nodes(*_ASKING, within=statement) else None


def chosen_there(edits: Edits, call: cst.Call, cost: LineCost) -> None:
    """Lets the device choose. Raises Refused where it is not known which of the two are tensors, also in the
    first step."""
    source, (first, second) = edits.source, [arg.value for arg in call.args]
    function, bound, turned = _OF_TORCH[source.name(call.func)]
    ran = [op for op in cost.ops if op.name in ("aten::lt", "aten::gt") and len(op.dtypes) > 1]
    by_hand = f"use `torch.{function}` of two tensors, or `clamp` for a number"
    if len(ran) != 1:
        raise Refused(by_hand)
    if ran[0].dtypes[1] == "Scalar":
        tensors = [first if ran[0].name == f"aten::{turned}" else second]
    else:
        tensors = [first, second]
    tensors = [one for one in tensors if not _may_begin_as_number(source, one, call)]
    if len(tensors) == 2:
        edits.replace(call.func, f"{edits.add_import('torch', 'import torch')}.{function}")
    elif tensors:
        other = second if tensors[0] is first else first
        edits.replace(call, f"{atom(source.code(tensors[0]))}.clamp({bound}={source.code(other)})")
    else:
        raise Refused(by_hand)


def _may_begin_as_number(source: Source, node: cst.BaseExpression, call: cst.Call) -> bool:
    """Whether ``node``, a tensor in the measured steps, may be a number before: a name that something else
    gives than ``call``, another call, or arithmetic."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return False
    given = [source.given(one) for one in source.bindings(source.code(node))]
    return not given or any(
        not isinstance(one, (cst.Call, cst.BinaryOperation))
        or source.is_named(getattr(one, "func", None), "float", "int")
        for one in given
    )
