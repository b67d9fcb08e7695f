"""A model that the step's function is given: where its callers make it or move it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.model_lines import model_made
from warpline.rulekit.origins import parameters, passing
from warpline.rulekit.terms.evaluate import descend
from warpline.rulekit.training import TrainingStep
from warpline.syntax.source import Source, Statement, alone, is_method, only_target, receiver

_CALLS = 3  # functions that hand a model on. Chosen: scripts seldom have more

#: Where a statement is that makes or moves a model, and the model's name there.
Made = tuple[Source, Statement, str]


def given_model(context: Context, step: TrainingStep, name: str) -> Made | None:
    """The last statement that makes, moves or wraps the model ``name`` before the step, where its file gives
    that name no value: in the only function whose calls hand it on. None where it is not known to run."""
    if model_made(step, name) is not None:
        return None
    return _made_before(context, step.source, step.backward, name, _CALLS)


def _made_before(context: Context, source: Source, node: cst.CSTNode, name: str, depth: int) -> Made | None:
    made = [one for one in _before(source, node) if _makes_or_moves(source, one, name)]
    if made:
        return source, max(made, key=source.line), name
    function = source.enclosing(node, cst.FunctionDef)
    if function is None or name not in parameters(function) or not depth:
        return None
    calls = [
        one for one in passing(context, source, function, name) if context.reached.node(*one[:2]) is not False
    ]
    told = {(where.scope(call), where.code(given.value)) for where, call, given in calls}
    if len(told) != 1:
        return None
    where, call, given = calls[0]
    return _made_before(context, where, call, where.code(given.value), depth - 1)


def _before(source: Source, node: cst.CSTNode) -> Iterator[Statement]:
    """The statements of ``node``'s function that have run when ``node`` runs: those before it, in its block
    and in the blocks around."""
    for around in (node, *source.ancestors(node)):
        if isinstance(around, (cst.FunctionDef, cst.ClassDef)):
            return
        if isinstance(around, Statement):
            block = source.block(around)
            yield from block[: block.index(around)]


def _makes_or_moves(source: Source, statement: Statement, name: str) -> bool:
    own = alone(statement)
    if isinstance(own, cst.Assign):
        target = only_target(own)
        return target is not None and source.code(target) == name and any(descend(own.value, cst.Call))
    call = own.value if isinstance(own, cst.Expr) else None
    moved = receiver(call) if is_method(call, "to", "cuda") else None
    return moved is not None and source.code(moved) == name
