"""The edit that records no graph for one statement."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.edits import Edits, Refused


def without_graph(context: Context, place: tuple[str, int]) -> Fix:
    """The statement at ``place`` under ``torch.no_grad()``. Raises Refused."""
    source = context.source(place[0])
    statement = source.statement_at(place[1]) if source is not None else None
    if source is None or not isinstance(statement, cst.SimpleStatementLine):
        raise Refused("put the call of this part under `torch.no_grad()`")
    around = [source.code(item) for outer in source.ancestors(statement) if isinstance(outer, cst.With)
              for item in outer.items]  # fmt: skip
    if any("no_grad" in item or "inference_mode" in item for item in around):
        raise Refused("it already runs under `torch.no_grad()`")
    if any(isinstance(node, cst.Return) for node in statement.body):
        raise Refused("put the call of this part under `torch.no_grad()`")
    edits = Edits(source)
    edits.wrap([statement], f"with {edits.add_import('torch.no_grad', 'import torch')}():")
    return edits.fix("Wrap this in torch.no_grad()", "unsafe")
