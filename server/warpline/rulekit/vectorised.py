"""The edit that replaces a loop over the rows of a tensor by one expression of the whole tensor."""

from __future__ import annotations

import re

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.rounds import Rounds
from warpline.rulekit.terms import descend
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement

_ELEMENTWISE = {
    "abs", "exp", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "silu",
    "clamp", "square", "pow", "float", "half",
}  # fmt: skip


def at_once(found: Rounds) -> Fix:
    """Replace the loop and its list by one expression. Raises Refused where the loop does more than
    elementwise arithmetic on rows that are stacked afterwards."""
    source, loop = found.source, found.loop
    if found.whole:
        raise Refused(
            "create a tensor of all numbers (`torch.arange(n)[:, None]`) and compute all "
            "iterations at once, or combine rows by their number with `index_add_` or "
            "`scatter_reduce_`"
        )
    if isinstance(loop, cst.While):
        raise Refused("the condition of the `while` may end it early: work on the whole tensor by hand")
    if found.uneven:
        raise Refused(
            "combine rows by their piece's number with `index_add_` or `scatter_reduce_`, or pad the pieces"
        )
    if not isinstance(loop, cst.For):
        raise Refused(
            "the loop is one expression: call its function with the whole tensor, or use `torch.vmap`"
        )
    block = source.block(loop)
    index = block.index(loop)
    body = loop.body.body
    if len(body) != 1 or loop.orelse is not None or not isinstance(body[0], cst.SimpleStatementLine):
        raise Refused(
            "an iteration has more than one statement" if len(body) > 1 else "iterations may differ"
        )
    pieces, value = _collected(source, body[0])
    if value is None or pieces is None:
        carried = _bound(loop) & _read(loop)
        reason = "each iteration needs the result of the previous one"
        raise Refused(reason if carried else "the results are not collected in a list")
    start, stack = _start(source, block[:index], pieces), block[index + 1] if index + 1 < len(block) else None
    if start is None or stack is None:
        raise Refused("the list of results is not created directly above the loop and stacked directly below")
    scope = source.enclosing(loop, cst.FunctionDef) or source.module
    named = [one for one in source.nodes(cst.Name, cst.Attribute, within=scope) if source.code(one) == pieces]
    if len(named) != 3:  # created, appended to, stacked
        raise Refused("the list of results is used elsewhere, too")
    joined = _stacked(source, stack, pieces)
    variable, tensor = source.code(loop.target), _whole(source, loop)
    whole = _lifted(source, value, variable, tensor)
    edits = Edits(source)
    edits.remove(start)
    edits.remove(loop)
    edits.replace(joined, whole)
    return edits.fix("Work on the whole tensor at once", "unsafe")


def _bound(loop: cst.For) -> set[str]:
    """Names that a round gives a value."""
    targets = (item.target for item in descend(loop.body, cst.AssignTarget, cst.AugAssign))
    return {target.value for target in targets if isinstance(target, cst.Name)}


def _read(loop: cst.For) -> set[str]:
    values = (item.value for item in descend(loop.body, cst.Assign, cst.AugAssign))
    names = {name.value for value in values for name in descend(value, cst.Name)}
    added = (item.target for item in descend(loop.body, cst.AugAssign))
    return names | {target.value for target in added if isinstance(target, cst.Name)}


def _collected(
    source: Source, statement: cst.SimpleStatementLine
) -> tuple[str | None, cst.BaseExpression | None]:
    """``rows.append(value)`` -> rows, value."""
    small = statement.body[0]
    call = small.value if isinstance(small, cst.Expr) else None
    if (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "append"
    ):
        return source.code(call.func.value), call.args[0].value if len(call.args) == 1 else None
    return None, None


def _start(source: Source, above: list[Statement], pieces: str) -> Statement | None:
    return next((item for item in reversed(above) if source.code(item).strip() == f"{pieces} = []"), None)


def _stacked(source: Source, statement: Statement, pieces: str) -> cst.Call:
    calls: list[cst.Call] = list(descend(statement, cst.Call))
    for call in calls:
        given = [source.code(arg.value) for arg in call.args]
        if source.is_named(call.func, "torch.stack") and given and given[0] == pieces:
            dim = source.argument(call, "dim", 1)
            if dim is None or source.literal(dim.value) == 0:
                return call
    raise Refused("the list is not stacked along the first dimension directly below the loop")


def _whole(source: Source, loop: cst.For) -> str:
    """The tensor whose first dimension the loop runs over."""
    found = re.fullmatch(r"range\((?:len\((\w+)\)|(\w+)\.(?:size\(0\)|shape\[0\]))\)", source.code(loop.iter))
    if found is None:
        raise Refused("the loop may not run over the whole first dimension")
    return found.group(1) or found.group(2)


def _lifted(source: Source, value: cst.BaseExpression, variable: str, tensor: str) -> str:
    """``value`` with ``x`` for ``x[i]``; elementwise only."""
    piece = re.compile(rf"\b{tensor}\s*\[\s*{variable}\s*\]")
    for node in descend(value, cst.BaseExpression):
        if isinstance(node, (cst.IfExp, cst.BooleanOperation)):
            raise Refused("iterations may differ")
        if isinstance(node, (cst.Attribute, cst.Subscript)) and piece.search(source.code(node.value)):
            call = source.parent(node)  # `x[i].exp()`; but `x[i][0]` and `x[i].T` mean something else of `x`
            if not (isinstance(node, cst.Attribute) and isinstance(call, cst.Call) and call.func is node):
                raise Refused("an iteration takes a part of its slice")
        if isinstance(node, cst.Call):
            name = source.code(node.func).rpartition(".")[2]
            of_numbers = source.name(node.func).partition(".")[0] in ("float", "math")
            if name not in _ELEMENTWISE or of_numbers or any(arg.keyword is not None for arg in node.args):
                raise Refused(f"`{name}` may not be elementwise")
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
            raise Refused("a matrix product is not elementwise")
    text = source.code(value)
    lifted = piece.sub(tensor, text)
    if lifted == text or re.search(rf"\b{variable}\b", lifted):
        raise Refused("the loop variable is used for more than the slice")
    return lifted
