"""Loops that call a function of the user's for each tensor, which then takes lists of tensors."""

from __future__ import annotations

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.foreach import Loop, has_lists, over_lists
from warpline.rulekit.foreach_record import ADVICE, check_rounds
from warpline.rulekit.origins import parameter_of
from warpline.rulekit.terms import function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone, called_name


def lists_at(context: Context, cost: LineCost) -> Fix:
    """One call for all tensors in place of each operation at a line, of the loop around it or around the only
    call of its function. Raises Refused."""
    source = context.source(cost.file)
    statement = source.statement_at(cost.line)
    calling = callers(context, function_of(cost))
    if statement is None or source.loops_from(statement) or len(calling) != 1:
        return over_lists(context, source, cost.line)
    if calling[0].file != cost.file or not has_lists(context):
        raise Refused(ADVICE)
    return _called(context, source, cost.line, calling[0].line)


def _called(context: Context, source: Source, line: int, call_line: int) -> Fix:
    loops, function = source.loops_at(call_line), function_at(source, line)
    if function is None or not loops or not isinstance(loops[0], cst.For):
        raise Refused(ADVICE)
    loop = Loop(context, source, loops[0])
    call = _only_call(context, function, loop)
    inner, edits = _Body(context, source, function), Edits(source)
    inner.module = edits.add_import("torch", "import torch")
    given = []
    for arg in call.args:
        name = parameter_of(function, arg, call)
        keyword = f"{arg.keyword.value}=" if arg.keyword is not None else ""
        if not loop.own(arg.value):
            number = loop.number(arg.value)
            given.append(arg.star + keyword + (f"({number})" if arg.value.lpar else number))
            continue
        if not loop.path(arg.value) or name is None:
            raise Refused(f"what `{function.name.value}` is given is not looked up, but computed")
        given.append(keyword + loop.listed(arg.value))
        inner.names.add(name)
        inner.written.lists[name] = name
    if not inner.names:
        raise Refused(ADVICE)
    inner.rewrite(edits)
    check_rounds(context, source.path, inner.written.operations)
    loop.collect(edits, [f"{source.code(call.func)}({', '.join(given)})"])
    return inner.result(edits)


def _only_call(context: Context, function: cst.FunctionDef, loop: Loop) -> cst.Call:
    """The call that is all that a round does, if nothing else uses the function. Raises Refused."""
    small = alone(loop.body[0]) if len(loop.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    name = function.name.value
    if not isinstance(call, cst.Call) or called_name(call) != name:
        raise Refused(ADVICE)
    uses = [one for other in context.sources() for one in other.nodes(cst.Name) if one.value == name]
    if len(uses) != 2 or function.decorators:  # its own and the call's
        raise Refused(f"`{name}` is used elsewhere, too: give it lists of tensors by hand")
    return call


class _Body(Loop):
    """The body of the called function. Parameters that got one round's tensor become lists of all rounds'."""

    def __init__(self, context: Context, source: Source, function: cst.FunctionDef) -> None:
        self.begin(context, source)
        self.text = source.code(function)
        if not isinstance(function.body, cst.IndentedBlock):
            raise Refused(ADVICE)
        self.body: list[cst.BaseStatement] = list(function.body.body)
        if function.get_docstring() is not None:
            self.body.pop(0)

    def rewrite(self, edits: Edits) -> None:
        """Put the calls for lists in place of each statement. Raises Refused."""
        for statement in self.body:
            before = len(self.written.lines)
            self.statement(statement)
            if not isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                raise Refused(ADVICE)
            if len(self.written.lines) == before:
                edits.remove(statement)
            else:
                edits.replace_statement(statement, "\n".join(self.written.lines[before:]))
        if self.written.lists.keys() != self.names:
            raise Refused("the function looks up more of a tensor than it is given")

    def _read_after(self, name: str) -> bool:
        return False
