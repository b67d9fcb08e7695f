"""Edits that read a value later: after the loop, or every N steps."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.waiting import READS, counter, read_call, reads_of
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, is_method

#: Operators that bring a value to the host.
_READ_OPS = ("aten::item", "aten::_local_scalar_dense")
#: Calls that only tell somebody a value; others (a running average) may need each of them.
_TELLS = (
    "print", "write", "info", "debug", "warning", "log", "log_metrics", "log_dict", "log_scalar", "echo",
    "add_scalar", "add_scalars", "set_postfix", "set_postfix_str", "set_description", "set_description_str",
    "writerow", "track", "report",
)  # fmt: skip
#: Methods, and functions of torch, whose result is one bit.
_ONE_BIT = ("all", "any")


def read_later(context: Context, cost: LineCost) -> Fix:
    """A fix for the value that the line of ``cost`` reads in each step. Raises Refused."""
    source = context.source(cost.file)
    call = read_call(source, cost.line)
    checked = _asserted(source, cost.line)
    if checked is not None:
        return _on_device(source, *checked)
    if call is None:
        raise Refused("the wait is not a plain `.item()` or `.cpu()`")
    statement = source.statement(call)
    loops = source.loops(call)
    if statement is None or not loops:
        raise Refused("the value is not read in a loop of this function")
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Refused("the program branches on the value")
    small = statement.body[0]
    if is_method(call, "item") and isinstance(small, cst.AugAssign) and isinstance(small.target, cst.Name):
        return _sum(source, call, small, cost)
    if isinstance(small, cst.Expr):
        outer = small.value
        if is_method(outer, "append") and is_method(call, "item"):
            return _list(source, call, outer, _whole(source, call, cost))
        if not isinstance(outer, cst.Call) or not source.is_named(outer.func, *_TELLS):
            name = source.code(outer.func) if isinstance(outer, cst.Call) else "what it is given to"
            raise Refused(
                f"`{name}` may need each value: pass `.detach()`, accumulate on the device, and read "
                "it after the loop"
            )
        return _every_so_often(source, statement)
    raise Refused("the value is used on the host in every step")


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


def _on_device(source: Source, check: cst.Assert, test: cst.Call, negated: bool) -> Fix:
    if check.msg is not None and not isinstance(source.literal(check.msg), str):
        raise Refused("the message of the `assert` would be made in each step: use a fixed text")
    edits = Edits(source)
    torch = edits.add_import("torch", "import torch")
    said = "" if check.msg is None else f", {source.code(check.msg)}"
    edits.replace(check, f"{torch}._assert_async({'~' if negated else ''}{source.code(test)}{said})")
    return edits.fix("Let the device check it", "unsafe")


def _sum(source: Source, call: cst.Call, small: cst.AugAssign, cost: LineCost) -> Fix:
    assert isinstance(small.target, cst.Name)
    if not isinstance(small.operator, cst.AddAssign):
        raise Refused("only sums can be accumulated on the device without changing their bits")
    name, whole = small.target.value, _whole(source, call, cost)
    loop = _loop_without(source, name, small)
    edits = Edits(source)
    # In double precision a sum has the bits that Python's own would have.
    edits.replace(call, _receiver(source, call) + (".detach()" if whole else ".detach().double()"))
    edits.insert_after(loop, f"{name} = {'int' if whole else 'float'}({name})")
    # What was summed may have been integers, which no record says: then a whole number becomes 3.0.
    known = whole or _types(cost) or not is_method(_summed(call), "sum", "count_nonzero")
    return edits.fix("Accumulate on the device and read once after the loop", "safe" if known else "unsafe")


def _list(source: Source, call: cst.Call, outer: cst.BaseExpression, whole: bool) -> Fix:
    assert isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute)
    if not isinstance(outer.func.value, cst.Name) or len(outer.args) != 1 or outer.args[0].value is not call:
        raise Refused("the value is used on the host in every step")
    name = outer.func.value.value
    loop = _loop_without(source, name, outer)
    edits = Edits(source)
    edits.replace(call, _receiver(source, call) + ".detach()")
    edits.insert_after(loop, f"{name}[:] = [{'int' if whole else 'float'}(value) for value in {name}]")
    return edits.fix("Keep the values on the device and read them after the loop", "safe")


def _whole(source: Source, call: cst.Call, cost: LineCost) -> bool:
    """Whether the value that is read is an integer: by its recorded type, else a counted comparison."""
    types = _types(cost)
    if types:
        return all("int" in name or "bool" in name for name in types)
    summed = _summed(call)
    if not is_method(summed, "sum") or not isinstance(summed, cst.Call):
        return False
    return bool(source.nodes(cst.Comparison, within=summed.func))


def _types(cost: LineCost) -> list[str]:
    return [op.dtypes[0] for op in cost.ops if op.name in _READ_OPS and op.dtypes]


def _summed(call: cst.Call) -> cst.BaseExpression | None:
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def _loop_without(source: Source, name: str, use: cst.CSTNode) -> cst.For | cst.While:
    """The innermost loop, provided that ``name`` is used nowhere else in it."""
    loop = source.loops(use)[0]
    for read in reads_of(source, name, loop):
        if not source.inside(read, use):
            raise Refused(f"`{name}` is also read inside the loop")
    if any(isinstance(node, cst.Return) for node in source.nodes(cst.Return, within=loop)):
        raise Refused("the function may return from inside the loop")
    return loop


def _receiver(source: Source, call: cst.Call) -> str:
    assert isinstance(call.func, cst.Attribute)
    return source.code(call.func.value)


def _every_so_often(source: Source, statement: Statement) -> Fix:
    found = counter(source, statement)
    if found is None:
        raise Refused("reading it only every N steps needs a counter, and the loop has none")
    if any(
        isinstance(outer, cst.If) for outer in source.ancestors(statement) if source.inside(outer, found[1])
    ):
        raise Refused("it is already read under a condition")
    edits = Edits(source)
    edits.wrap([statement], f"if {found[0]} % 50 == 0:")
    return edits.fix("Read the value only every N steps", "unsafe")
