"""Attention rewritten as ``F.scaled_dot_product_attention``, with its mask, scale and dropout."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.model.report import Fix
from warpline.rulekit.formulas.attention import Attention, has_product, is_causal, is_gone, is_parameter
from warpline.rulekit.terms import Formula, Rewrite, Term, atom, moved, without_casts
from warpline.syntax.edits import Refused

#: Operators on the scores alone.
_OF_SCORES = ("aten::softmax", "aten::_softmax", "aten::exp")
#: Operators whose first two tensors are the scores and a mask, or a mask and what the scores are made of.
_MASKING = ("aten::baddbmm", "aten::masked_fill", "aten::add")


def fused_call(formula: Formula[Attention]) -> Fix:
    """The edit that replaces the formula by one call. Raises Refused."""
    found, rewrite = formula.found, formula.rewrite
    key = found.key.args[0] if found.key.op == "transpose" and _last_two(found.key, formula) else None
    tensors = [
        rewrite.spell(found.query),
        rewrite.spell(key) if key is not None else f"{atom(rewrite.spell(found.key))}.transpose(-2, -1)",
        rewrite.spell(found.value),
    ]
    mask = _mask(formula)
    after = moved(found.order)
    masked = any(name == "attn_mask" for name, _ in mask)
    if (apart := _without_heads(formula, masked)) is not None:
        tensors = [f"{atom(one)}.unsqueeze(1)" for one in tensors]
        after = f".squeeze(1){after}"
        if apart:
            mask = [(name, f"{atom(one)}.unsqueeze(1)" if name == "attn_mask" else one) for name, one in mask]
    arguments = [*tensors, *(f"{name}={one}" for name, one in mask)]
    if found.dropout is not None:
        arguments.append(f"dropout_p={_dropout(found.dropout, rewrite)}")
    arguments += _scale(formula)
    if _keeps_weights(formula):
        raise Refused("the function uses the weights elsewhere too, which the fused call does not give")
    return rewrite.to_call("torch.nn.functional.scaled_dot_product_attention", arguments, after)


def _without_heads(formula: Formula[Attention], masked: bool) -> bool | None:
    """Whether a mask has a row for each sample, where the scores have three dimensions: no fused kernel takes
    those. None where they have others, or nothing tells of the mask."""
    ops = [op for op in formula.forward if op.outer and op.shapes]
    scores = {len(op.shapes[0]) for op in ops if op.name in _OF_SCORES}
    if scores != {3}:
        return None
    if not masked:
        return False
    given = {min(map(len, op.shapes[:2])) for op in ops if op.name in _MASKING}
    return given == {3} if given in ({2}, {3}) and formula.found.masks[0].op != "if" else None


def _keeps_weights(formula: Formula[Attention]) -> bool:
    """Whether a variable still holds the softmax: the fused call would run besides, and replace nothing."""
    held = {id(part) for term in formula.rewrite.env.values() for part in _parts(term)}
    return any(id(part) in held for part in formula.found.weights)


def _parts(term: Term) -> Iterator[Term]:
    """The term and what it is computed from, the nearest first, each once."""
    waiting, seen = [term], {id(term)}
    for item in waiting:
        yield item
        new = [arg for arg in item.args if id(arg) not in seen]
        seen.update(map(id, new))
        waiting += new


def _last_two(key: Term, formula: Formula[Attention]) -> bool:
    """Whether a transposition is of the last two dimensions (``(1, 2)`` is, of three)."""
    if key.value == (-2, -1):
        return True
    sizes = {
        len(op.shapes[0])
        for op in formula.forward
        if op.shapes and op.name in ("aten::matmul", "aten::softmax", "aten::bmm") and len(op.shapes[0]) > 1
    }
    outer = {size for size in sizes if size > 3} or sizes
    if len(outer) == 1:
        size = outer.pop()
        return bool(tuple(dim % size for dim in key.value) == (size - 2, size - 1))
    return bool(key.value == (2, 3))


def _scale(formula: Formula[Attention]) -> list[str]:
    """The ``scale`` argument; empty where it is the default, one over the root of the head size."""
    found, rewrite = formula.found, formula.rewrite
    if not found.scale:
        return ["scale=1.0"]
    if len(found.scale) == 1 and found.scale[0].op == "rsqrt":
        inside = _number(found.scale[0])
        rows = [_unmoved(term) for term in (found.query, *found.key.args[:1])]
        if inside.op == "size" and inside.value == -1 and _unmoved(inside.args[0]) in rows:
            return []
    for factor in found.scale:
        number = factor.args[1] if factor.op == "div" else _number(factor) if factor.op == "rsqrt" else factor
        if number.op == "attr" and is_parameter(number, formula.flow):
            raise Refused("its scale may be a tensor, but the fused call needs a number")
    texts = [
        f"{atom(rewrite.spell(_number(factor)))} ** -0.5" if factor.op == "rsqrt" else rewrite.spell(factor)
        for factor in found.scale
    ]
    return [f"scale={' * '.join(texts)}"]


def _number(root: Term) -> Term:
    """What a root is taken of, be it as a tensor (``torch.tensor(n)``)."""
    inside = root.args[0]
    return inside.args[0] if inside.op == "tensor" else inside


def _unmoved(term: Term) -> Term:
    """The tensor with the same rows in another order of its other dimensions."""
    while term.op == "permute" and term.value[-1] == len(term.value) - 1:
        term = term.args[0]
    return term


def _mask(formula: Formula[Attention]) -> list[tuple[str, str]]:
    masks = formula.found.masks
    if not masks:
        return []
    shapes = [op.shapes[1] for op in formula.forward if "masked_fill" in op.name and op.shapes[1:]]
    if any(len(shape) < 2 for shape in shapes):
        raise Refused("its mask has fewer than two dimensions")
    if len(masks) > 1:
        raise Refused("several masks are combined")
    mask, condition, when = masks[0], None, ""
    if mask.op == "if":
        test, mask, bare = mask.args
        if mask.op not in ("masked_fill", "where", "add") or bare not in map(without_casts, mask.args):
            raise Refused("its mask could not be analyzed")
        if test.op == "is_not" and test.args[1].op == "const" and test.args[1].value is None:
            condition = formula.rewrite.spell(test.args[0])
        else:
            when = formula.rewrite.spell(test)
            if when.startswith("~"):
                raise Refused("its mask depends on a condition that could not be analyzed")
    if condition is None and is_causal(mask, formula.flow):
        return [("is_causal", f"bool({when})" if when else "True")]
    text = _kept(mask, formula)
    if when:
        return [("attn_mask", f"{text} if {when} else None")]
    if condition in (None, text):
        return [("attn_mask", text)]
    return [("attn_mask", f"None if {condition} is None else {text}")]


def _kept(mask: Term, formula: Formula[Attention]) -> str:
    """A boolean mask of what is kept, or one to be added."""
    spell = formula.rewrite.spell
    if mask.op == "add":
        added = next(arg for arg in mask.args if not has_product(arg))
        return spell(added)
    hidden, low = (mask.args[1], mask.args[2]) if mask.op == "masked_fill" else (mask.args[0], mask.args[2])
    if mask.op == "where" and has_product(mask.args[2]):
        low = mask.args[1]
    if not is_gone(low):
        raise Refused("masked scores get a value that is too high to become zero in the softmax")
    if mask.op == "where" and not has_product(mask.args[2]):
        return spell(hidden)
    if hidden.op == "not":
        return spell(hidden.args[0])
    if hidden.op in ("eq", "ne"):
        opposite = "!=" if hidden.op == "eq" else "=="
        return f"{spell(hidden.args[0])} {opposite} {spell(hidden.args[1])}"
    return f"~{atom(spell(hidden))}"


def _dropout(term: Term, rewrite: Rewrite) -> str:
    if term.op == "if":
        inner = next(arg for arg in term.args[1:] if arg.op == "dropout")
        if inner is not term.args[1]:
            raise Refused("dropout depends on a condition that could not be analyzed")
        return f"({_dropout(inner, rewrite)}) if {rewrite.spell(term.args[0])} else 0.0"
    p, training = term.args[1], term.args[2]
    if training.op == "const" and training.value is True:
        return rewrite.spell(p)
    return f"{rewrite.spell(p)} if {rewrite.spell(training)} else 0.0"
