"""Edits that read many values of the device at once, where a comprehension waits for each of them."""

from __future__ import annotations

import libcst as cst

from warpline.model.change import RemoveSyncs
from warpline.model.profile import LineCost
from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.deferring import READ_OPS
from warpline.rulekit.foreach import has_lists
from warpline.rulekit.foreach_arithmetic import normed
from warpline.rulekit.terms import descend, names_in
from warpline.rulekit.waiting import read_call
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.source import Source, called_name, is_method

_COMPREHENSIONS = (cst.DictComp, cst.ListComp, cst.GeneratorExp, cst.SetComp)
_RECORDED = ("aten::linalg_vector_norm", "aten::norm")
#: Methods that give the same objects each time they are called.
_FRESH = (
    "items", "values", "keys", "parameters", "named_parameters", "modules", "named_modules", "children",
    "named_children", "buffers", "named_buffers",
)  # fmt: skip
#: Calls that make a list or another collection, which can be gone through twice.
_COLLECTIONS = ("list", "tuple", "dict", "sorted")
_DISPLAYS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)


def all_but_one(cost: LineCost) -> RemoveSyncs:
    """The change that :func:`read_at_once` makes: the last wait of each run of the line stays."""
    copies = sum(kernel.count for kernel in cost.kernels if kernel.kind == "copy")
    return RemoveSyncs((cost.place,), keep=min(1.0, max(cost.calls, 1.0) / max(cost.syncs + copies, 1.0)))


def read_at_once(context: Context, cost: LineCost) -> Fix:
    """A fix for a comprehension that reads a value of each of many tensors. Raises Refused."""
    source = context.source(cost.file)
    call = read_call(source, cost.line)
    whole = source.enclosing(call, *_COMPREHENSIONS, cst.Lambda) if call is not None else None
    if call is None or not isinstance(whole, _COMPREHENSIONS) or not cost.syncs > cost.calls:
        raise Refused("the line does not read one value after the other")
    head, part = whole.for_in, whole.value if isinstance(whole, cst.DictComp) else whole.elt
    assert isinstance(call.func, cst.Attribute)
    if not is_method(call, "item") or not source.inside(call, part):
        raise Refused("the values are not read by a plain `.item()`")
    if head.inner_for_in is not None or head.asynchronous is not None:
        raise Refused("the comprehension has several loops")
    read = [op for op in cost.ops if op.name in READ_OPS]
    if not read or any(op.shapes[:1] != ((),) for op in read) or len({op.dtypes[:1] for op in read}) > 1:
        raise Refused("it is not known that the values are numbers of one type")
    edits = Edits(source)
    torch = edits.add_import("torch", "import torch")
    loop = source.code(head).lstrip()  # which begins with the blanks before it
    numbers = f"{_stacked(context, source, call.func.value, loop, torch)}.tolist()"
    if isinstance(whole, cst.DictComp):
        if part is not call or not _twice(source, head.iter):
            raise Refused("what it goes through may be gone afterwards")
        keys = f"[{source.code(whole.key)} {loop}]"
        edits.replace(whole, f"dict(zip({keys}, {numbers}))")
    elif part is call and not isinstance(whole, cst.SetComp):
        edits.replace(whole, numbers)
    else:
        each = names_in(head.target) | {"value"}
        if not all(source.inside(one, call) for name in each for one in source.uses(name, part)):
            raise Refused("more than the values is made of the tensors")
        edits.replace(call, "value").replace(head, source.code(head).replace(loop, f"for value in {numbers}"))
    return edits.fix("Read all values at once", "unsafe")


def norms_at_once(context: Context, cost: LineCost) -> Fix:
    """A fix for a comprehension that computes the norm of each of many tensors. Raises Refused."""
    source = context.source(cost.file)
    found = [
        (whole, call, norm)
        for whole in source.nodes(cst.ListComp, cst.GeneratorExp, within=source.statement_at(cost.line))
        for call in descend(whole.elt, cst.Call)
        if (norm := normed(source, call)) is not None
    ]
    if len(found) != 1 or not has_lists(context) or not any(op.name in _RECORDED for op in cost.ops):
        raise Refused("the line does not compute one norm after the other")
    whole, call, (tensor, order) = found[0]
    names = {name for head in descend(whole.for_in, cst.CompFor) for name in names_in(head.target)}
    if not all(source.inside(one, call) for name in names for one in source.uses(name, whole.elt)):
        raise Refused("more than the norms is made of the tensors")
    edits = Edits(source)
    torch = edits.add_import("torch", "import torch")
    norms = f"{torch}._foreach_norm([{source.code(tensor)} {source.code(whole.for_in).lstrip()}]{order})"
    if whole.elt is call and isinstance(source.parent(whole), cst.Arg):
        edits.replace(whole, norms)
    else:
        edits.replace(call, "norm").replace(whole.for_in, f" for norm in {norms}")
    return edits.fix("Compute all norms with one call", "unsafe" if context.on_gpu else "safe")


def _stacked(context: Context, source: Source, value: cst.BaseExpression, loop: str, torch: str) -> str:
    """The values as one tensor; norms by one call for the list of tensors, where torch has that."""
    norm = normed(source, value) if has_lists(context) else None
    if norm is not None:
        return f"{torch}.stack({torch}._foreach_norm([{source.code(norm[0])} {loop}]{norm[1]}))"
    return f"{torch}.stack([{source.code(value)} {loop}])"


def _twice(source: Source, through: cst.BaseExpression) -> bool:
    """Whether ``through`` gives the same again when it is gone through a second time."""
    if isinstance(through, cst.Call):
        return isinstance(through.func, cst.Attribute) and called_name(through) in _FRESH and not through.args
    made: list[cst.BaseExpression | None] = [*source.assigned(source.code(through))]
    if isinstance(through, cst.Name):
        uses = source.uses(through.value, source.scope(through))
        made = [source.given(one) for one in uses if source.binds(one)]
    return bool(made) and all(
        isinstance(one, _DISPLAYS) or (isinstance(one, cst.Call) and source.is_named(one.func, *_COLLECTIONS))
        for one in made
    )
