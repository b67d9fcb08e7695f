"""Attention: a softmax between two products, with what is laid over the scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from warpline.rulekit.formulas.activation import softmax, without_maximum
from warpline.rulekit.terms.calls import BOOLS, sizes_of
from warpline.rulekit.terms.evaluate import descend
from warpline.rulekit.terms.flow import Flow, follow
from warpline.rulekit.terms.term import Term, without_casts
from warpline.syntax.source import Source

#: A masked score this low or lower is gone after the softmax.
_GONE = -1e4
_LAST_TWO = (-2, -1)
_ONE = Term("const", value=1)
#: What keeps the entries of a mask of zeros and ones.
_SAME = ("cast", "whole", "view", "reshape", "unsqueeze", "expand")
#: What keeps the type of a mask.
_TYPE_KEPT = ("tril", "triu", "index", "view", "reshape", "unsqueeze", "expand")


@dataclass(frozen=True, slots=True)
class Attention:
    query: Term
    key: Term  # as the product took it: rows are features
    value: Term
    scale: tuple[Term, ...] = ()  # factors
    masks: tuple[Term, ...] = ()  # masked_fill, where, add or if terms, outermost first
    dropout: Term | None = None
    weights: tuple[Term, ...] = ()  # the softmax, and what its parts are
    order: tuple[int, ...] = ()  # the result's dimensions, where they are moved
    rank: int = 0  # the dimensions that the scores must have; 0: the text says that they do


def attention(term: Term) -> Attention | None:
    """``softmax(mask(q @ k * scale)) @ v``, dropout and casts between them allowed."""
    if term.op == "moved":
        unmoved = attention(term.args[0])
        return unmoved and replace(unmoved, order=term.value)
    if term.op != "matmul":
        return None
    (weights, dropout), value = _without_dropout(without_casts(term.args[0])), term.args[1]
    turned = weights.op == "transpose" and weights.value == _LAST_TWO
    if turned:
        weights, inner = _without_dropout(without_casts(weights.args[0]))
        dropout = dropout or inner
    parts, dim = softmax(weights)
    if dim is None:
        return None
    scores = without_casts(parts[-1])
    found = _scores(scores, Attention(term, term, value, dropout=dropout, weights=parts[:-1]))
    last, rank = (-2 if turned else -1), _dims(found.query) if found is not None else 0
    if found is None or (dim != last if dim < 0 else rank not in (0, dim - last)):
        return None
    counted = {_counted(mask) for mask in found.masks} | {dim - last if dim >= 0 and not rank else 0}
    if len(counted - {0}) > 1:
        return None
    found = replace(found, rank=max(counted))
    return _turned(found) if turned else _scaled_query(found)


def _dims(term: Term) -> int:
    """How many dimensions a tensor has, as far as a permutation says; else 0."""
    return len(term.value) if term.op == "permute" else 0


def _counted(mask: Term) -> int:
    """The dimensions that scores must have for a mask that is set in place; 0 where the text says that they
    do."""
    mask = mask.args[1] if mask.op == "if" else mask
    hidden = mask.args[1] if mask.op == "masked_fill" else mask
    return int(dict(hidden.value).get("rank", 0)) if hidden.op == "triu" else 0


def _scaled_query(found: Attention) -> Attention:
    """The attention whose queries are scaled by a number, or by their own size, before the product."""
    query = found.query
    if query.op != "mul":
        return found
    for inner, factor in (query.args, query.args[::-1]):
        own = factor.op == "rsqrt" and factor.args[0].op == "size" and factor.args[0].args == (inner,)
        if own or factor.number is not None:
            return replace(found, query=inner, scale=(*found.scale, factor))
    return found


def _without_dropout(weights: Term) -> tuple[Term, Term | None]:
    if weights.op == "dropout":
        return without_casts(weights.args[0]), weights
    if weights.op == "if" and any(arg.op == "dropout" for arg in weights.args[1:]):
        inner = next(arg for arg in weights.args[1:] if arg.op != "dropout")
        return without_casts(inner), weights
    return weights, None


def _turned(found: Attention) -> Attention | None:
    """The attention whose scores are transposed, with a row for each key; None with masks, which are, too."""
    query, key = found.key, found.query
    if found.masks or query.op != "transpose" or query.value != _LAST_TWO:
        return None
    return replace(found, query=query.args[0], key=Term("transpose", (key,), _LAST_TWO))


def _scores(term: Term, attention: Attention) -> Attention | None:
    term = without_casts(term)
    if term.op == "matmul":
        return replace(attention, query=term.args[0], key=term.args[1])
    if (shifted := without_maximum(term, (-1,))) is not term:
        return _scores(shifted, attention)
    if term.op == "mul":
        for inner, factor in (term.args, term.args[::-1]):
            deeper = _scores(inner, attention)
            if deeper is not None:
                return None if _adds(deeper) else replace(deeper, scale=(*deeper.scale, factor))
    if term.op == "div" and term.args[1].op == "attr":  # anything else may be a tensor
        deeper = _scores(term.args[0], attention)
        if deeper is None or _adds(deeper):
            return None
        return replace(deeper, scale=(*deeper.scale, replace(term, args=(_ONE, term.args[1]))))
    if term.op in ("masked_fill", "if"):
        inner = term.args[0] if term.op == "masked_fill" else term.args[2]
        deeper = _scores(inner, attention)
        return deeper and replace(deeper, masks=(term, *deeper.masks))
    if term.op in ("where", "add"):
        for inner in term.args[1:] if term.op == "where" else term.args:
            deeper = _scores(inner, attention) if has_product(inner) else None
            if deeper is not None:
                return replace(deeper, masks=(term, *deeper.masks))
    return None


def _adds(found: Attention) -> bool:
    """Whether something is added to the scores: what scales the sum also scales that."""
    ways = [part for mask in found.masks for part in (mask.args[1:] if mask.op == "if" else (mask,))]
    return any(part.op == "add" for part in ways)


def has_product(term: Term) -> bool:
    """Whether a term is a matrix product, or one with a mask, a scale or a bias over it."""
    term = without_casts(term)
    return term.op == "matmul" or (
        term.op in ("mul", "div", "masked_fill", "where", "add", "if") and any(map(has_product, term.args))
    )


def is_gone(low: Term) -> bool:
    """Whether a masked score gets no weight: minus infinity, or close to it."""
    number = low.number
    if number is not None:
        return number <= _GONE
    return low.op == "attr" and low.value == "min" and low.args[0].op == "finfo"


def is_causal(mask: Term, flow: Flow) -> bool:
    """``masked_fill(tril == 0, -inf)`` with as many rows as columns."""
    if mask.op != "masked_fill" or not is_gone(mask.args[2]):
        return False
    hidden = mask.args[1]
    if (hidden.op == "eq" and hidden.args[1].number == 0) or hidden.op == "not":
        return _triangle(hidden.args[0], flow) == "tril"
    return _triangle(hidden, flow) == "triu"


def hides_the_future(mask: Term, flow: Flow, *, flags: bool) -> bool:
    """Whether ``attn_mask=mask`` does what ``is_causal=True`` does: True in the lower triangle of a square
    (``flags``: it is one of bools), or -inf in the upper one."""
    plain = without_casts(mask)
    if flags and plain.op == "not":
        return _triangle(plain.args[0], flow) == "triu"
    if not flags and plain.op == "triu":
        filled = without_casts(plain.args[0])
        square = filled.op == "full" and _is_square(filled.args[0]) and is_gone(filled.args[1])
        return square and _diagonal(plain) == 1
    return flags and _triangle(plain, flow) == "tril"


def _triangle(term: Term, flow: Flow) -> str | None:
    """ "tril" or "triu" of a square of ones, an upper one without its diagonal; None for what is neither."""
    term = _entries(term)
    if term.op == "index":
        ends = [part.args[1] for part in term.args[1:] if part.op == "slice"]
        rows = [end for end in ends[-2:] if end.op != "const" or end.value is not None]
        if len(rows) != 2 or rows[0] is not rows[1]:
            return None
        term = _entries(term.args[0])
    if term.op == "attr":
        made = {_triangle(one, inside) for one, inside in _buffers(flow, str(term.value))}
        return made.pop() if len(made) == 1 else None
    if term.op not in ("tril", "triu"):
        return None
    ones = _entries(term.args[0])
    sizes = sizes_of(ones)[-2:]
    whole = [(one.op, one.value, one.args) for one in sizes]  # the size of what it is laid over
    over = len(whole) == 2 and whole == [("size", at, sizes[0].args) for at in (-2, -1)]
    square = ones.op in ("ones", "ones_like") and (len(set(sizes)) == 1 or over)
    return str(term.op) if square and _diagonal(term) == (0 if term.op == "tril" else 1) else None


def _entries(mask: Term) -> Term:
    """A mask without what only gives it another type or more dimensions."""
    while mask.op in _SAME or (mask.op == "index" and all(map(_is_whole, mask.args[1:]))):
        mask = mask.args[0]
    return mask


def _is_whole(part: Term) -> bool:
    """``None``, ``...`` or ``:`` among indices."""
    ends = part.args if part.op == "slice" else (part,)
    return all(end.op == "const" and end.value in (None, ...) for end in ends)


def _diagonal(term: Term) -> object:
    return dict(term.value).get("diagonal") or 0


def _is_square(size: Term) -> bool:
    return size.op == "tuple" and len(size.args) == 2 and size.args[0] is size.args[1]


def _buffers(flow: Flow, name: str) -> Iterator[tuple[Term, Flow]]:
    """What the module's buffer is made as, wherever it is registered and not changed there after that, with
    the function that does."""
    source = flow.source
    for value in _registered(source, flow.owner, name):
        function = source.enclosing(value, cst.FunctionDef)
        if function is None:
            continue
        inside = replace(follow(source, function), owner=None)
        left = inside.evaluator.env
        names = [one for one in descend(value, cst.Name) if source.is_value(one) and one.value in left]
        if value in inside.terms and all(inside.terms.get(one) is left[one.value] for one in names):
            yield inside.terms[value], inside


def _registered(source: Source, owner: cst.ClassDef | None, name: str) -> Iterator[cst.BaseExpression]:
    for call in descend(owner, cst.Call) if owner is not None else ():
        if (
            source.is_named(call.func, "register_buffer")
            and len(call.args) > 1
            and source.literal(call.args[0].value) == name
        ):
            yield call.args[1].value


def holds_flags(mask: Term, flow: Flow) -> bool | None:
    """Whether a mask is one of bools, by how the text makes it; None where it does not say."""
    if mask.op in ("cast", "whole", "not"):
        return mask.op == "not" or mask.value == "bool"
    if mask.op in ("ones", "zeros", "full"):
        named = dict(zip(reversed(mask.value), reversed(mask.args), strict=False))
        return "dtype" in named and named["dtype"].value in BOOLS
    if mask.op == "attr":
        found = {holds_flags(made, inside) for made, inside in _buffers(flow, str(mask.value))}
        return found.pop() if len(found) == 1 else None
    return holds_flags(mask.args[0], flow) if mask.op in _TYPE_KEPT else None


def is_parameter(term: Term, flow: Flow) -> bool:
    """Whether a term is a module's own parameter or buffer, or a property, which may be made of one."""
    name, owner = str(term.value), flow.owner
    made = flow.evaluator.members.get(name)
    if made is not None and flow.source.is_named(made.func, "Parameter", "tensor", "ones"):
        return True
    functions = descend(owner, cst.FunctionDef) if owner is not None else iter(())
    return any(_registered(flow.source, owner, name)) or any(one.name.value == name for one in functions)


def words(attention: Attention, flow: Flow) -> list[str]:
    """What hides some of the keys, and dropout, as ``capture/runner/probing/attention.py`` knows them."""
    causal = (
        len(attention.masks) == 1 and attention.masks[0].op != "if" and is_causal(attention.masks[0], flow)
    )
    hiding = ["causal" if causal else "mask"] if attention.masks else []
    return [*hiding, *(["dropout"] if attention.dropout is not None else [])]
