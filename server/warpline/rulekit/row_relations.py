"""Losses that relate the rows of a batch to each other: of more rows at once they are another loss."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from warpline.model.profile import LineCost
from warpline.rulekit.context import Context
from warpline.rulekit.origins import is_self
from warpline.syntax.source import Source, is_method, receiver

_GIVING = (cst.Assign, cst.AnnAssign, cst.AugAssign)
_PAIRS = ("cdist", "pdist", "corrcoef", "cov")
_GRADIENTS = ("zero_grad", "clip_grad_norm_", "clip_grad_value_", "unscale_")
_REDUCTIONS = {"reduction": ("mean", "none"), "size_average": (True, None)}
_SPREADS = ("std", "var", "std_mean", "var_mean")


def relates_rows(context: Context, lines: Iterable[LineCost]) -> bool:
    """Whether one of the lines compares the rows of a batch, as contrastive losses do, or scales them by how
    they spread, as far as the text says."""
    sources = ((context.source(cost.file), cost.line) for cost in lines)
    found = ((source, source.statement_at(line)) for source, line in sources)
    return any(one is not None and _relates(source, one) for source, one in found)


def adds_up(source: Source, call: cst.Call) -> bool:
    """Whether it adds up all that a tensor has, and not what is along some dimensions, or is a loss that
    does."""
    if source.name(call.func) == "torch.sum":
        return len(call.args) == 1
    reduction = source.argument(call, "reduction")
    summed = reduction is not None and source.literal(reduction.value) == "sum"
    return summed or (is_method(call, "sum") and not call.args)


def reduces_otherwise(source: Source, call: cst.Call) -> bool:
    """Whether an argument says that a loss is no mean, or may say so."""
    found = ((source.argument(call, name), good) for name, good in _REDUCTIONS.items())
    return any(given is not None and source.literal(given.value) not in good for given, good in found)


def carries_over(source: Source, loop: cst.For, loss: cst.BaseExpression) -> bool:
    """Whether a turn of the loop computes its loss from what the one before made of its rows, as a hidden
    state."""
    fresh = {one.value for one in source.nodes(cst.Name, within=loop.target)}
    own = fresh | {one.value for one in _named(source, loop.body) if source.binds(one)}
    waiting: list[cst.CSTNode] = [loss]
    seen: list[cst.CSTNode] = []
    while waiting:
        part = waiting.pop()
        seen.append(part)
        names: list[cst.Name | cst.Attribute] = [*_named(source, part)]
        names += source.nodes(cst.Attribute, within=part)
        for name in names:
            adds = isinstance(part, cst.AugAssign) and part.target is name
            if source.code(name) in fresh or (source.binds(name) and not adds):
                continue
            made = [
                (one, source.enclosing(one, *_GIVING, cst.CompFor))
                for one in source.bindings(source.code(name), loop.body)
            ]
            given = [(one, by) for one, by in made if isinstance(by, _GIVING)]
            before = [by for one, by in given if source.span(one) < source.span(name) and by is not part]
            read = {one.value for _, by in given if by.value for one in _named(source, by.value)}
            if given and not before and (adds or not own.isdisjoint(read)):
                return True
            waiting += [one for one in before if one not in seen and one not in waiting]
    return False


def _named(source: Source, within: cst.CSTNode) -> list[cst.Name]:
    return [one for one in source.nodes(cst.Name, within=within) if source.is_value(one)]


def touches_gradients(source: Source, loop: cst.For) -> bool:
    """Whether a loop does something with the gradients of one turn: clips them or sets them to zero."""
    calls = source.nodes(cst.Call, within=loop.body)
    named = any(source.is_named(call.func, *_GRADIENTS) for call in calls)
    return named or any(one.attr.value == "grad" for one in source.nodes(cst.Attribute, within=loop.body))


def _relates(source: Source, statement: cst.CSTNode) -> bool:
    for node in source.nodes(cst.BinaryOperation, within=statement):
        multiplied = isinstance(node.operator, cst.MatrixMultiply) and _is_turned(source, node.right)
        if multiplied or {_added_at(source, side) for side in (node.left, node.right)} == {0, 1}:
            return True
    return any(_call_relates(source, call) for call in source.nodes(cst.Call, within=statement))


def _call_relates(source: Source, call: cst.Call) -> bool:
    given = [arg.value for arg in call.args]
    if source.is_named(call.func, "mm", "matmul"):
        return bool(given) and _is_turned(source, given[-1])
    if source.is_named(call.func, "arange", "eye"):
        # To take something of each row it may be numbered.
        taking = source.enclosing(call, cst.Subscript) is not None
        return not taking and any(rows_of(source, one) is not None for one in given)
    if source.is_named(call.func, *_SPREADS):
        dim = source.argument(call, "dim", int(source.name(call.func).startswith("torch.")))
        return dim is None or source.literal(dim.value) == 0
    return source.is_named(call.func, *_PAIRS)


def _is_turned(source: Source, node: cst.BaseExpression) -> bool:
    """Whether it is a matrix with the rows as its columns, and none of a module's own."""
    if isinstance(node, cst.Attribute) and node.attr.value in ("T", "mT"):
        held: cst.BaseExpression | None = node.value
    elif isinstance(node, cst.Call) and is_method(node, "t", "transpose"):
        if [source.literal(arg.value) for arg in node.args] not in ([], [0, 1], [1, 0]):
            return False
        held = receiver(node)
    else:
        return False
    while isinstance(held, cst.Attribute):
        held = held.value
    return held is not None and not is_self(held)


def _added_at(source: Source, node: cst.BaseExpression) -> int | None:
    """Where a dimension is added: 0 for ``x[None]``, 1 for ``x[:, None]``."""
    if is_method(node, "unsqueeze") and node.args:
        at = source.literal(node.args[0].value)
        return at if isinstance(at, int) else None
    parts = [source.code(part.slice) for part in node.slice] if isinstance(node, cst.Subscript) else []
    return parts.index("None") if "None" in parts else None


def rows_of(source: Source, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor whose rows ``len(x)``, ``x.shape[0]`` or ``x.size(0)`` counts."""
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Attribute):
        first = node.slice[0].slice
        row = isinstance(first, cst.Index) and source.literal(first.value) == 0
        return node.value.value if row and node.value.attr.value == "shape" else None
    if isinstance(node, cst.Call) and source.name(node.func) == "len" and node.args:
        return node.args[0].value
    sized = is_method(node, "size") and len(node.args) == 1 and source.literal(node.args[0].value) == 0
    return receiver(node) if sized else None
