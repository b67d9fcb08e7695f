"""Whether a tensor made in one iteration of a loop stays unchanged in the next ones."""

from __future__ import annotations

import libcst as cst

from warpline.syntax.source import Source

#: They may return the tensor that they are given, or a view of all of it.
_SAME = frozenset({
    "detach", "view", "reshape", "squeeze", "unsqueeze", "flatten", "unflatten", "transpose", "permute", "t",
    "movedim", "to", "cpu", "cuda", "numpy", "float", "half", "double", "bfloat16", "type", "contiguous",
    "requires_grad_",
})  # fmt: skip
#: They return a view of a part, which keeps the memory of the whole.
_PARTS = frozenset({"narrow", "select", "expand", "expand_as", "diagonal", "unbind", "chunk", "split"})


def lasting(source: Source, loop: cst.For | cst.While, value: cst.BaseExpression) -> str:
    """The code of ``value``, with ``.clone()`` unless each round of ``loop`` makes a new tensor there that
    nothing in the loop changes in place. What a call returns is taken to be new."""
    code = source.code(value)
    if _is_new(source, loop, value, 4):
        return code
    plain = isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call))
    return f"{code}.clone()" if plain else f"({code}).clone()"


def _is_new(source: Source, loop: cst.For | cst.While, value: cst.BaseExpression, depth: int) -> bool:
    if isinstance(value, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
        return True
    if isinstance(value, cst.Call):
        name = value.func.attr.value if isinstance(value.func, cst.Attribute) else ""
        if name in _PARTS or (name.endswith("_") and name not in _SAME):
            return False
        if name not in _SAME or not isinstance(value.func, cst.Attribute):
            return True
        function = source.name(value.func).startswith("torch.")
        if function and not value.args:
            return False
        inner = value.args[0].value if function else value.func.value
        return bool(depth) and _is_new(source, loop, inner, depth - 1)
    if not isinstance(value, cst.Name) or not depth or _is_changed(source, loop, value.value):
        return False
    targets = [one for one in (loop, *source.nodes(cst.For, within=loop)) if isinstance(one, cst.For)]
    if any(_names(source, one.target, value.value) for one in targets):
        return True
    made = source.assigned(value.value, within=loop)
    return bool(made) and all(_is_new(source, loop, one, depth - 1) for one in made)


def _is_changed(source: Source, loop: cst.For | cst.While, name: str) -> bool:
    """Whether a statement of the loop changes ``name`` in place."""
    for grown in source.nodes(cst.AugAssign, within=loop):
        if _names(source, grown.target, name):
            return True
    for assigned in source.nodes(cst.AssignTarget, within=loop):
        if not isinstance(assigned.target, cst.Name) and _is_of(assigned.target, name):
            return True
    for call in source.nodes(cst.Call, within=loop):
        function = call.func
        if (
            isinstance(function, cst.Attribute)
            and function.attr.value.endswith("_")
            and _is_of(function, name)
        ):
            return True
        written = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "out"]
        if any(_names(source, arg.value, name) for arg in written):
            return True
    return False


def _is_of(node: cst.CSTNode, name: str) -> bool:
    """Whether ``node`` is a part or a member of ``name``: ``x[0]``, ``x.data``, ``x[:, 1].mul_``."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name) and node.value == name


def _names(source: Source, node: cst.CSTNode, name: str) -> bool:
    return any(one.value == name for one in source.nodes(cst.Name, within=node))
