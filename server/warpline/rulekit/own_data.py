"""Statements that compute a tensor's new data from its old: ``p.data = 0.9 * p.data + 0.1 * q.data``."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.terms import descend
from warpline.syntax.source import Source, only_target


def own_data(context: Context, source: Source, small: cst.CSTNode | None) -> cst.Attribute | None:
    """The ``p.data`` that a statement computes from itself, if it may as well be changed in place: none of
    the project's files makes two tensors have the same data (``p.data = q.data``)."""
    target = _data(small)
    if not isinstance(small, cst.Assign) or target is None:
        return None
    code = source.code(target)
    if not any(source.code(one) == code for one in descend(small.value, cst.Attribute)):
        return None
    shared = any(
        _data(other) is not None and isinstance(other.value, (cst.Name, cst.Attribute, cst.Subscript))
        for file in context.sources()
        for other in file.nodes(cst.Assign)
    )
    return None if shared else target


def _data(small: cst.CSTNode | None) -> cst.Attribute | None:
    target = only_target(small)
    return target if isinstance(target, cst.Attribute) and target.attr.value == "data" else None
