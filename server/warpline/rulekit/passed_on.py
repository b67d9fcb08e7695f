"""Where a number that other code reads as well is passed on to layers."""

from __future__ import annotations

import libcst as cst

from warpline.rulekit.context import Context
from warpline.syntax.source import Source
from warpline.wire.births import Holder

#: Calls that draw numbers below a limit: beside a larger layer they may go on as they are.
_DRAWING = ("randint", "randint_like", "randrange", "integers", "random_")


def passed_on(context: Context, holder: Holder) -> tuple[Source, cst.Name] | None:
    """The one read of the variable ``holder`` that passes it on under a name of its own: to a class's field
    (``words: int = TOKENS``), a parameter's default, an entry. None where there is none or several, where
    nothing else reads the variable, and where anything else does but what draws random data: a size that has
    to agree with a layer's must change with it.
    """
    source = context.source(holder.file)
    if holder.kind != "variable" or not holder.name:
        return None
    reads = source.reads(holder.name, source.module)
    given = [one for one in reads if _is_passed_on(source, one)]
    others = [one for one in reads if one not in given]
    single = len(given) == 1 and others and all(draws(source, one) for one in others)
    return (source, given[0]) if single else None


def _is_passed_on(source: Source, read: cst.Name) -> bool:
    """Whether ``read`` is all of a value that gets a name there."""
    parent = source.parent(read)
    if isinstance(parent, cst.Arg) and parent.keyword is not None:
        call = source.parent(parent)
        return isinstance(call, cst.Call) and source.is_named(
            call.func, "dict", "SimpleNamespace", "Namespace"
        )
    return (
        (isinstance(parent, cst.AnnAssign) and parent.value is read)
        or (isinstance(parent, cst.Param) and parent.default is read)
        or (isinstance(parent, cst.DictElement) and parent.value is read)
    )


def draws(source: Source, read: cst.BaseExpression) -> bool:
    """Whether ``read`` is an argument of a call that draws numbers."""
    parent = source.parent(read)
    call = source.parent(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and source.is_named(call.func, *_DRAWING)
