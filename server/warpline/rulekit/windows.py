"""Batches of windows that are cut one after the other: ``torch.stack([data[i:i + n] for i in starts])``.

All windows are one look-up in a view of the data, which takes no memory: ``data.unfold(0, n, 1)`` in torch,
``sliding_window_view(data, n)`` in NumPy. A look-up of single numbers (``data[starts[:, None] +
torch.arange(n)]``) needs an index as large as the batch: for 8 windows of 8,192 numbers it takes four times
as long as the loop, and the view a third (medians of 0.25 s each, one thread of an EPYC).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import libcst as cst

from warpline.rulekit.context import Context
from warpline.rulekit.origins import assigned_values
from warpline.rulekit.terms import names_in
from warpline.syntax.source import Source, appended, called_name, is_whole, plain_lines

#: Methods and functions that do the same to all numbers, one by one.
_EACH = frozenset({
    "astype", "copy", "clone", "contiguous", "detach", "to", "type", "long", "int", "short", "byte", "bool",
    "float", "double", "half", "bfloat16", "cpu", "cuda", "numpy",
})  # fmt: skip
_MAKES_TENSORS = (
    "torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.FloatTensor",
)  # fmt: skip
_OF_ARRAYS = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")
#: Functions of torch's that give other things than tensors.
_NO_TENSOR = ("torch.load", "torch.Generator", "torch.device")
_LISTS = ("list", "range", "sorted", "random.sample", "random.choices")
#: Methods that give what they are called on, in another form.
_KEPT = _EACH | {"view", "reshape", "flatten", "ravel", "squeeze", "t", "transpose", "T", "pin_memory"}


@dataclass(frozen=True, slots=True)
class Window:
    """``piece``: the subscript. The window is ``length`` long along dimension ``dim`` of ``base``, and begins
    ``offset`` after the loop's number (texts; an empty one is nothing). ``last``: ``dim`` is the last one,
    however many there are."""

    piece: cst.Subscript
    base: str
    dim: int
    length: str
    offset: str
    last: bool = False


def windows(source: Source, loop: cst.CSTNode) -> list[tuple[cst.BaseExpression, Window]]:
    """What a loop collects, where that is windows and nothing else, each with its window; else nothing."""
    if isinstance(loop, cst.For):
        values = _appended(loop)
    elif isinstance(loop, (cst.ListComp, cst.GeneratorExp)):
        plain = not loop.for_in.ifs and loop.for_in.inner_for_in is None and loop.for_in.asynchronous is None
        values = [loop.elt] if plain else []
    else:
        return []
    target = loop.target if isinstance(loop, cst.For) else loop.for_in.target
    found = [(value, window(source, target, value)) for value in values]
    given = [(value, one) for value, one in found if one is not None]
    return given if len(given) == len(values) else []


def _appended(loop: cst.For) -> list[cst.BaseExpression]:
    """The values that a loop appends to lists; empty where a statement of it does anything else."""
    added = [appended(line) for line in plain_lines(loop.body) or ()]
    values = [one[1] for one in added if one is not None]
    plain = loop.orelse is None and loop.asynchronous is None
    return values if plain and len(values) == len(added) else []


def window(source: Source, target: cst.CSTNode, value: cst.BaseExpression) -> Window | None:
    """The window that ``value`` takes, or converts, where ``target`` is the loop's number; else None."""
    if not isinstance(target, cst.Name):
        return None
    number = target.value
    used = source.uses(number, value)
    pieces = {source.enclosing(name, cst.Subscript) for name in used}
    piece = next(iter(pieces), None)
    if len(pieces) != 1 or piece is None or not source.inside(piece, value):
        return None
    if any(source.inside(name, piece.value) for name in used) or not _converts(source, value, piece):
        return None
    return _cut(source, piece, number)


def _converts(source: Source, value: cst.BaseExpression, piece: cst.Subscript) -> bool:
    """Whether ``value`` does nothing to the piece but give its numbers another type or place."""
    node: cst.CSTNode = piece
    while node is not value:
        above = source.parent(node)
        if isinstance(above, cst.Attribute):
            call = source.parent(above)
            if not isinstance(call, cst.Call) or call.func is not above or above.attr.value not in _EACH:
                return False
            node = call
        elif isinstance(above, cst.Arg):
            call = source.parent(above)
            if not isinstance(call, cst.Call) or call.args[0] is not above or above.keyword is not None:
                return False
            if not source.is_named(call.func, *_MAKES_TENSORS, *_OF_ARRAYS):
                return False
            node = call
        else:
            return False
    return True


def _cut(source: Source, piece: cst.Subscript, number: str) -> Window | None:
    """The window that a subscript takes. None where its length is not the same for every number."""
    cuts = [at for at, one in enumerate(piece.slice) if number in names_in(one)]
    (at,) = cuts if len(cuts) == 1 else (-1,)
    part = piece.slice[at].slice if at >= 0 else None
    if not isinstance(part, cst.Slice) or part.step is not None or part.lower is None or part.upper is None:
        return None
    start, end = _sum(source, part.lower, number), _sum(source, part.upper, number)
    if start is None or end is None or start[number] != 1 or end[number] != 1:
        return None
    length, offset = _text(_minus(end, start)), _text(_minus(start, Counter({number: 1})))
    if length is None or offset is None or not length or length.startswith("-"):
        return None
    before, after = piece.slice[:at], piece.slice[at + 1 :]
    last = bool(before) and isinstance(before[0].slice, cst.Index) and isinstance(
        before[0].slice.value, cst.Ellipsis
    )  # fmt: skip
    if last and (len(before) > 1 or after):
        return None
    if not (last or all(is_whole(one.slice) for one in before)) or not all(
        _is_fixed(source, one) for one in after
    ):
        return None
    base = source.code(piece.value)
    if not isinstance(piece.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)):
        base = f"({base})"
    if not all(is_whole(one.slice) for one in after):
        rest = ", ".join(source.code(one.slice) for one in after)
        base = f"{base}[{':, ' * (at + 1)}{rest}]"
    return Window(piece, base, -1 if last else at, length, offset, last)


def _is_fixed(source: Source, one: cst.SubscriptElement) -> bool:
    """Whether it takes the same of every window: all, one column or some neighbours."""
    part = one.slice
    if isinstance(part, cst.Index):
        return isinstance(part.value, cst.Ellipsis) or isinstance(source.literal(part.value), int)
    return isinstance(part, cst.Slice)


def _sum(source: Source, node: cst.BaseExpression, number: str) -> Counter[str] | None:
    """The terms of a sum, each with how often it is added; whole numbers as the term "". None of what a round
    may change: calls, say."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        left, right = _sum(source, node.left, number), _sum(source, node.right, number)
        if left is None or right is None:
            return None
        return _minus(left, right) if isinstance(node.operator, cst.Subtract) else _plus(left, right)
    if isinstance(node, cst.Integer):
        return Counter({"": int(node.value, 0)})
    code = source.code(node)
    if code in (number, f"int({number})", f"{number}.item()"):
        return Counter({number: 1})
    calls = [source.name(call.func) for call in source.nodes(cst.Call, within=node)]
    if number in names_in(node) or any(name != "len" for name in calls):
        return None
    return Counter({code if isinstance(node, (cst.Name, cst.Attribute, cst.Call)) else f"({code})": 1})


def _plus(one: Counter[str], other: Counter[str]) -> Counter[str]:
    return Counter({term: one[term] + other[term] for term in {**one, **other}})


def _minus(one: Counter[str], other: Counter[str]) -> Counter[str]:
    return Counter({term: one[term] - other[term] for term in {**one, **other}})


def _text(terms: Counter[str]) -> str | None:
    """A sum as text, what is added first; None where a term is in it more than once."""
    if any(abs(often) > 1 for term, often in terms.items() if term):
        return None
    added = sorted((-often, term) for term, often in terms.items() if term and often)
    if whole := terms[""]:
        added.append((-whole, str(abs(whole))))
    text = "".join(f" {'+' if less < 0 else '-'} {term}" for less, term in added)
    return text[3:] if text.startswith(" +") else text.replace(" - ", "-", 1)


# -- what is cut, and where ---------------------------------------------------------------------


def kinds(
    context: Context, source: Source, node: cst.BaseExpression, seen: frozenset[cst.CSTNode] = frozenset()
) -> set[str]:
    """What a value is as far as the text says: "torch", "numpy" or "list", also several; "" where it does
    not say. ``seen``: what was followed already."""
    if isinstance(node, (cst.List, cst.ListComp, cst.Tuple)):
        return {"list"}
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _any(context, assigned_values(context, source, node), seen)
    if isinstance(node, cst.Call):
        return _called(context, source, node, seen)
    parts: list[cst.BaseExpression] = []
    if isinstance(node, cst.Subscript):  # a part of it
        parts = [node.value]
    elif isinstance(node, cst.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, cst.Dict):  # one of its entries
        parts = [one.value for one in node.elements]
    return _any(context, [(source, one) for one in parts], seen)


def _any(
    context: Context, values: list[tuple[Source, cst.BaseExpression]], seen: frozenset[cst.CSTNode]
) -> set[str]:
    """What one of ``values`` is."""
    new = [(where, one) for where, one in values if one not in seen]
    found = {kind for where, one in new for kind in kinds(context, where, one, seen | {one})}
    return found if new or values else {""}


def _called(context: Context, source: Source, call: cst.Call, seen: frozenset[cst.CSTNode]) -> set[str]:
    name, method = source.name(call.func), called_name(call)
    if name in _LISTS or method in ("tolist", "sample", "choices"):
        return {"list"}
    if name.startswith("numpy."):
        return {"numpy"}
    if name.startswith("torch."):
        return {"torch"} if name.count(".") == 1 and name not in _NO_TENSOR else {""}
    if isinstance(call.func, cst.Attribute):
        owner = kinds(context, source, call.func.value, seen)
        if method == "numpy":
            return {"numpy"}
        # What a generator of NumPy's gives is an array, too.
        return owner if method in _KEPT or owner == {"numpy"} else {""}
    back = source.returned(call)
    return _any(context, [(source, back)] if back is not None else [], seen)
