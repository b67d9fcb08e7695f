"""Floating-point operations and least memory traffic of an op, from its inputs' shapes.

A multiply-add counts as two operations, as in ``torch.utils.flop_counter``, which these formulas follow. The
arithmetic of ops without a formula is too little to count.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import msgspec

from warpline.model.dtypes import ELEMENT_BYTES
from warpline.trace.columns import Signature

Formula = Callable[[Signature], float]

#: Views and allocations, which move no bytes.
_VIEWS = (
    "view reshape t transpose permute expand as_strided slice select unsqueeze squeeze detach empty "
    "empty_like empty_strided resize_ alias _unsafe_view split chunk unbind narrow flatten result_type to "
    "lift_fresh resolve_conj resolve_neg set_ item is_nonzero view_as expand_as split_with_sizes unfold"
)
WEIGHTLESS = frozenset(f"aten::{name}" for name in _VIEWS.split(" "))


def flops_of(name: str, inputs: Signature) -> float | None:
    """Floating-point operations of one call; None for operators without a formula, or malformed shapes."""
    formula = _FORMULAS.get(name)
    if formula is None:
        return None
    try:
        return float(formula(inputs))
    except (IndexError, ValueError):
        return None


def bytes_of(name: str, inputs: Signature) -> float | None:
    """Least traffic of one call in bytes: each input read once, the result written once. None if unknown.

    A trace has no size of the result. It is computed for matrix products, and taken to be that of the largest
    input for other ops (elementwise ops, copies).
    """
    if name in WEIGHTLESS or not name.startswith("aten::"):
        return None
    sizes = [
        prod(shape) * ELEMENT_BYTES[dtype]
        for shape, dtype in zip(inputs.shapes, inputs.dtypes, strict=False)
        if dtype in ELEMENT_BYTES
    ]
    if not sizes:
        return None
    if name in _PARTS:
        try:
            return float(_PARTS[name](inputs, sizes))
        except (IndexError, KeyError):
            return None
    if name in _PRODUCTS and (made := _product_result(name, inputs)) is not None:
        return float(sum(sizes) + made)
    if name.endswith("_") or name in ("aten::sum", "aten::mean", "aten::norm"):
        return float(sum(sizes) + (max(sizes) if name.endswith("_") and name != "aten::copy_" else 0))
    return float(sum(sizes) + (0 if name == "aten::copy_" else max(sizes)))


def _looked_up(inputs: Signature, sizes: list[int]) -> float:
    """Embedding lookup: each chosen row is read and written once, and the indices are read."""
    indices = prod(inputs.shapes[1])
    return sizes[1] + 2 * indices * inputs.shapes[0][-1] * ELEMENT_BYTES[inputs.dtypes[0]]


def _picked(inputs: Signature, sizes: list[int]) -> float:
    """Picks one number for each target: these numbers, and the targets."""
    return sizes[1] + prod(inputs.shapes[1]) * ELEMENT_BYTES[inputs.dtypes[0]]


def _scattered(inputs: Signature, sizes: list[int]) -> float:
    """Writes one number for each target. Another op writes the zeros around them."""
    return sizes[2] + prod(inputs.shapes[2]) * ELEMENT_BYTES[inputs.dtypes[1]]


def _written(inputs: Signature, sizes: list[int]) -> float:
    return sizes[0]


#: Ops that touch only part of an input: ``(signature, bytes of each tensor input) -> bytes``.
_PARTS: dict[str, Callable[[Signature, list[int]], float]] = {
    "aten::embedding": _looked_up,
    "aten::nll_loss_forward": _picked,
    "aten::nll_loss_backward": _scattered,
    "aten::zero_": _written,
    "aten::fill_": _written,
}


def _product_result(name: str, inputs: Signature) -> float | None:
    try:
        left, right = _PRODUCTS[name]
        a, b = inputs.shapes[left], inputs.shapes[right]
        return prod(a[:-1]) * b[-1] * ELEMENT_BYTES[inputs.dtypes[left]]
    except (IndexError, KeyError):
        return None


def _matmul(left: int, right: int) -> Formula:
    def formula(inputs: Signature) -> float:
        a, b = inputs.shapes[left], inputs.shapes[right]
        if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
            raise ValueError
        return 2 * prod(a) * b[-1]

    return formula


def _integers(text: str) -> list[int]:
    value = msgspec.json.decode(text.encode())
    return list(value) if isinstance(value, list) else [int(value)]


def _convolution(inputs: Signature, transposed_at: int = 6) -> float:
    """2 * output positions * kernel size * channels; arguments as ``aten::convolution`` has them."""
    x, weight = inputs.shapes[0], inputs.shapes[1]
    try:
        stride, padding, dilation = (_integers(inputs.values[at]) for at in (3, 4, 5))
    except msgspec.DecodeError as error:
        raise ValueError from error
    if inputs.values[transposed_at] in ("True", "true", "1"):
        return 2 * prod(x) * prod(weight[1:])
    dims = len(weight) - 2
    spread = [column * dims if len(column) == 1 else column for column in (stride, padding, dilation)]
    positions = [
        (x[2 + at] + 2 * spread[1][at] - spread[2][at] * (weight[2 + at] - 1) - 1) // spread[0][at] + 1
        for at in range(dims)
    ]
    return 2 * x[0] * prod(positions) * prod(weight)


def _convolution_backward(inputs: Signature) -> float:
    """The gradients of input and weight, each as much work as the forward; a first layer's input has none."""
    gradient, weight = inputs.shapes[0], inputs.shapes[2]
    mask = inputs.values[10].strip("[]").split(",")[:2] if len(inputs.values) > 10 else []
    wanted = sum(word.strip().lower() in ("true", "1") for word in mask) if len(mask) == 2 else 2
    return 2 * wanted * gradient[0] * prod(gradient[2:]) * prod(weight)


def _attention(causal_at: int, query: int = 0, products: float = 2.0) -> Formula:
    """Attention. ``products``: matrix products of the scores' size, two in the forward pass and five in the
    backward pass, which recomputes the scores. With a causal mask only half of the scores is computed.
    """

    def formula(inputs: Signature) -> float:
        q, k, v = inputs.shapes[query : query + 3]
        causal = len(inputs.values) > causal_at and inputs.values[causal_at] in ("True", "true", "1")
        part = (k[-2] + 1) / (2 * k[-2]) if causal and q[-2] == k[-2] else 1.0
        return products * part * prod(q[:-1]) * k[-2] * (q[-1] + v[-1])

    return formula


_PRODUCTS = {
    "aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::addmm": (1, 2), "aten::baddbmm": (1, 2),
    "aten::_addmm_activation": (1, 2), "aten::_scaled_mm": (0, 1), "aten::_int_mm": (0, 1),
}  # fmt: skip
_FORMULAS: dict[str, Formula] = {
    **{name: _matmul(*places) for name, places in _PRODUCTS.items()},
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    **{
        f"aten::_scaled_dot_product_{kind}_attention{tail}": _attention(causal_at, query, products)
        for kind, tail, causal_at, query, products in (
            ("flash", "", 4, 0, 2.0),
            ("flash", "_backward", 11, 1, 5.0),
            ("efficient", "", 6, 0, 2.0),
            ("efficient", "_backward", 11, 1, 5.0),
            ("cudnn", "", 6, 0, 2.0),
            ("cudnn", "_backward", 14, 1, 5.0),
            ("flash", "_for_cpu", 4, 0, 2.0),
            ("flash", "_for_cpu_backward", 7, 1, 5.0),
        )
    },
}
