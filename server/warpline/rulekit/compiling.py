"""Calls of ``torch.compile``, and their options."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.edits import Edits, Refused
from warpline.rulekit.source import Source


def set_option(source: Source, edits: Edits, line: int, name: str, code: str) -> None:
    """Pass ``name=code`` to the ``torch.compile``, ``model.compile()`` or ``@torch.compile`` on ``line``.

    Raises :class:`Refused` where no such call stands there."""
    call = source.call(line, "torch.compile", "compile")
    if call is not None:
        edits.set_argument(call, name, code)
        return
    bare = _bare_decorator(source, line)
    if bare is None:
        raise Refused("the call of torch.compile was not found on that line")
    edits.replace(bare, f"{source.code(bare)}({name}={code})")


def _bare_decorator(source: Source, line: int) -> cst.BaseExpression | None:
    """``@torch.compile`` on that line, or above the function that begins there."""
    for function in source.nodes(cst.FunctionDef):
        for decorator in function.decorators:
            if source.is_named(decorator.decorator, "torch.compile") and line in (
                source.line(decorator),
                source.line(function),
                source.line(function.name),
            ):
                return decorator.decorator
    return None
