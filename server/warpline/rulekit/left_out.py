"""The edit that leaves what only prints or logs out of compiled code."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.compiled_reach import skipped_at
from warpline.rulekit.context import Context
from warpline.rulekit.terms import function_at
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, Statement, alone, called_name, is_method, receiver

_WRITES = ("print", "pprint.pprint", "warnings.warn", "sys.stdout.write", "sys.stderr.write", "tqdm.write")
_LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "log")
#: What is called a logger.
_LOGGER = re.compile(r"(^|[._])(log|logger|logging)$", re.IGNORECASE)
#: Calls in a condition that change nothing.
_ASKS = ("isEnabledFor", "any", "all", "isnan", "isinf", "isfinite", "item", "abs", "max", "min", "len")


def left_out(context: Context, places: Sequence[tuple[str, int]], by_hand: str) -> Fix:
    """Leave the statements at ``places`` out of compiled code. Raises Refused where one does more than print
    or log, with the advice ``by_hand``."""
    if len({file for file, _ in places}) > 1:
        raise Refused("another file has a break there, too: both have to go")
    source = context.source(places[0][0])
    said = [statement for _, line in places if (statement := said_at(source, line)) is not None]
    if len(said) < len(places):
        raise Refused(by_hand)
    if any(_is_guarded(source, statement) for statement in said):
        raise Refused("it is already excluded from the compiled code")
    later = [one for _, line in places for one in _later(context, source, line)]
    said += [one for one in later if not any(source.inside(one, statement) for statement in said)]
    edits = Edits(source)
    name = edits.add_import("torch.compiler.is_compiling", "import torch")
    for statement in dict.fromkeys(said):
        edits.wrap([statement], f"if not {name}():")
    return edits.fix("Exclude it from the compiled code", "unsafe")


def said_at(source: Source, line: int) -> Statement | None:
    """The statement at ``line``, where it only prints or logs, under a condition or not."""
    statement = source.statement_at(line)
    if isinstance(statement, cst.If):
        asked = source.nodes(cst.Call, cst.NamedExpr, within=statement.test)
        said = (
            statement.orelse is None
            and not isinstance(source.parent(statement), cst.If)  # an `elif`
            and all(isinstance(one, cst.Call) and called_name(one) in _ASKS for one in asked)
            and all(_only_says(source, small) for small in _lines(statement.body))
        )
        return statement if said else None
    return statement if _only_says(source, alone(statement)) else None


def _later(context: Context, source: Source, line: int) -> list[cst.SimpleStatementLine]:
    """The other lines that only print or log of a function that torch.compile gave up at the first one."""
    function = function_at(source, line)
    if function is None or skipped_at(context, source, function) is None:
        return []
    return [
        one
        for one in source.nodes(cst.SimpleStatementLine, within=function)
        if source.line(one) > line and _only_says(source, alone(one)) and not _is_guarded(source, one)
    ]


def _is_guarded(source: Source, statement: Statement) -> bool:
    guard = source.enclosing(statement, cst.If)
    return guard is not None and "is_compiling" in source.code(guard.test)


def _lines(body: cst.BaseSuite) -> Sequence[cst.CSTNode | None]:
    if isinstance(body, cst.IndentedBlock):
        return [alone(one) for one in body.body]
    return body.body


def _only_says(source: Source, small: cst.CSTNode | None) -> bool:
    """``print(...)``, ``logger.info(...)``, ``warnings.warn(...)``."""
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call):
        return False
    logger = receiver(call) if is_method(call, *_LEVELS) else None
    return source.is_named(call.func, *_WRITES) or (logger is not None and _is_logger(source, logger))


def _is_logger(source: Source, node: cst.BaseExpression) -> bool:
    return _LOGGER.search(source.name(node)) is not None or any(
        isinstance(one, cst.Call) and source.is_named(one.func, "logging.getLogger")
        for one in (node, *source.values(source.code(node)))
    )
