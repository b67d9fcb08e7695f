"""Loops that call a recurrent cell of torch's for each time of a sequence that is there as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.rounds import LEAST_ROUNDS
from warpline.rulekit.terms import descend, names_in
from warpline.syntax.source import Source, alone

#: The layer that works on a whole sequence with the same weights, by the cell's operator.
LAYERS = {
    "aten::lstm_cell": "LSTM",
    "aten::gru_cell": "GRU",
    "aten::rnn_tanh_cell": "RNN",
}


@dataclass(frozen=True, slots=True)
class Cells:
    """``count`` calls a step of the ``layer``'s cell at one line of ``loop``."""

    source: Source
    loop: cst.For
    cost: LineCost
    layer: str
    count: float


def cells(context: Context) -> Iterator[Cells]:
    """Loops in which a cell's input needs no earlier state, and nothing else changes its state."""
    for cost in context.profile.lines:
        calls = [op for op in cost.ops if op.name in LAYERS and op.phase == "forward"]
        count = sum(op.count for op in calls)
        if count < LEAST_ROUNDS or len({op.name for op in calls}) != 1:
            continue
        source = context.source(cost.file)
        statement, loop = source.statement_at(cost.line), next(iter(source.loops_at(cost.line)), None)
        if not isinstance(statement, cst.SimpleStatementLine) or not isinstance(loop, cst.For):
            continue
        if _fed_from_outside(loop, statement):
            yield Cells(source, loop, cost, LAYERS[calls[0].name], count)


def _fed_from_outside(loop: cst.For, statement: cst.SimpleStatementLine) -> bool:
    """Whether ``statement`` assigns the cell's state, no other one does, and the first argument of its call
    is made of nothing that a round computes from the state."""
    assign = alone(statement)
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call):
        return False
    state = {name for target in assign.targets for name in _names(target.target)}
    others = [(one, node) for node in descend(loop.body, cst.Assign, cst.AugAssign, cst.For)
              if node is not assign for one in _targets(node)]  # fmt: skip
    if not assign.value.args or any(state & _names(target) for target, _ in others):
        return False
    made = set(state)
    for _ in others:  # what follows from what: as often as there are assignments is enough
        for target, node in others:
            made |= _names(target) if _names(getattr(node, "value", node)) & made else set()
    return not _names(assign.value.args[0].value) & made


def _targets(node: cst.Assign | cst.AugAssign | cst.For) -> list[cst.CSTNode]:
    return [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]


def _names(node: cst.CSTNode) -> set[str]:
    return names_in(node) - {"torch"}
