"""Loops that call a function of the user's for each tensor, which then takes lists of tensors, and returns a
list where it returned a tensor."""

from __future__ import annotations

import re

import libcst as cst

from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.calling import callers, function_of
from warpline.rulekit.context import Context
from warpline.rulekit.foreach import Loop, has_lists, over_lists
from warpline.rulekit.foreach_record import ADVICE, check_rounds
from warpline.rulekit.origins import parameter_of
from warpline.rulekit.terms import descend, function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, alone, called_name, only_target


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
    call, target = _only_call(context, function, loop)
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
    written = f"{source.code(call.func)}({', '.join(given)})"
    if target is not None:
        loop.hint = "value"
        loop.store(target, written)
    loop.collect(edits, loop.written.lines or [written])
    return inner.result(edits)


def _only_call(
    context: Context, function: cst.FunctionDef, loop: Loop
) -> tuple[cst.Call, cst.BaseExpression | None]:
    """The call that is all that a round does, and what the round keeps the result in, if nothing else uses
    the function, but to keep it as ``self.update``. Raises Refused."""
    small = alone(loop.body[0]) if len(loop.body) == 1 else None
    target = only_target(small)
    call = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    name = function.name.value
    if not isinstance(call, cst.Call) or called_name(call) != name:
        raise Refused(ADVICE)
    if isinstance(small, cst.Assign) and (target is None or not loop.own(target) or not loop.path(target)):
        raise Refused(ADVICE)
    returned = [one for one in descend(function.body, cst.Return) if isinstance(one, cst.Return)]
    if bool(returned) != isinstance(small, cst.Assign):
        raise Refused(f"what `{name}` returns is not kept in each round")
    uses = [one for other in context.sources() for one in other.nodes(cst.Name) if one.value == name]
    kept = [
        assign
        for assign in loop.source.nodes(cst.Assign)
        if (held := only_target(assign)) is not None
        and loop.source.code(held) == loop.source.code(call.func) != name == loop.source.code(assign.value)
    ]
    # Its own and the call's, and two where it is kept.
    if len(uses) != 2 + 2 * len(kept) or len(kept) > 1 or function.decorators:
        raise Refused(f"`{name}` is used elsewhere, too: give it lists of tensors by hand")
    return call, target


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
            if self._asks_for_none(statement):
                continue
            before, known = len(self.written.lines), {*self.written.lists}
            small = alone(statement)
            if isinstance(small, cst.Return) and small.value is not None and statement is self.body[-1]:
                self.lines = self.source.extent(statement)
                code = self._tensors(small.value, changes=True)
                if code is None:
                    raise self._other(small)
                self.written.lines.append(f"return {code}")
            else:
                self.statement(statement)
            if not isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                raise Refused(ADVICE)
            self.written.lines[before:before] = [
                self._looked_up(code) for code in self.written.lists if code not in known
            ]
            if len(self.written.lines) == before:
                edits.remove(statement)
            else:
                edits.replace_statement(statement, "\n".join(self.written.lines[before:]))

    def _looked_up(self, code: str) -> str:
        """The list of ``p.data`` for each ``p`` of a list that is given. Raises Refused."""
        name, _, attributes = code.partition(".")
        if name not in self.names or not re.fullmatch(r"\w+(\.\w+)*", attributes):
            raise Refused("the function looks up more of a tensor than it is given")
        return f"{self.written.lists[code]} = [one.{attributes} for one in {name}]"

    def _asks_for_none(self, statement: cst.CSTNode) -> bool:
        """``if old is None: return new``, which no list is."""
        if not isinstance(statement, cst.If) or statement.orelse is not None:
            return False
        test = statement.test
        inner = alone(statement.body.body[0]) if len(statement.body.body) == 1 else None
        return (
            isinstance(inner, cst.Return)
            and isinstance(test, cst.Comparison)
            and self.path(test.left)
            and [self.source.code(one).strip() for one in test.comparisons] == ["is None"]
        )

    def _read_after(self, name: str) -> bool:
        return False
