"""Functions with a backward pass of their own: classes of ``torch.autograd.Function``."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.source import Source

_BASE = "torch.autograd.Function"


def own_gradient(source: Source, node: cst.CSTNode) -> cst.ClassDef | None:
    """The class with a backward pass of its own that ``node`` is in."""
    owner = source.enclosing(node, cst.ClassDef)
    bases = owner.bases if owner is not None else ()
    return owner if any(source.name(base.value) == _BASE for base in bases) else None


def own_gradient_at(context: Context, file: str, line: int) -> cst.ClassDef | None:
    """The same, of a line."""
    source = context.source(file)
    statement = source.statement_at(line)
    return own_gradient(source, statement) if statement is not None else None
