"""What kind of work an operator does, and how much of it."""

from __future__ import annotations

import math

import numpy as np

from warpline.trace.columns import Ints, Signature, Trace

OTHER, PRODUCT, ELEMENTWISE, FIXED = 0, 1, 2, 3

_PRODUCTS = (
    *("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::dot", "aten::linear"),
    *(
        "aten::_scaled_dot_product",
        "aten::_flash_attention",
        "aten::_efficient_attention",
        "aten::_cudnn_attention",
    ),
    *("aten::cudnn_convolution", "aten::_convolution", "aten::convolution", "aten::mkldnn_convolution"),
    *("aten::thnn_conv", "aten::slow_conv", "aten::_slow_conv", "aten::mkldnn_linear", "mkldnn::"),
    *("aten::_cudnn_rnn", "aten::_thnn_fused_lstm"),
)
#: Neither a product nor bound by memory in a way that another precision or a fusion would change.
_APART = (
    *("aten::copy_", "aten::_to_copy", "aten::item", "aten::_local_scalar_dense", "aten::sort", "aten::topk"),
    *("aten::nonzero", "aten::index", "aten::embedding", "aten::random_", "aten::normal_"),
)
#: Operators of the optimizer, and collectives: their cost depends on the parameters, not on the batch.
_FIXED = ("aten::_foreach_", "aten::_fused_ada", "aten::_fused_sgd", "c10d::", "nccl:")


def classes(trace: Trace) -> Ints:
    """PRODUCT, ELEMENTWISE, FIXED or OTHER for each host event, by its operator's name."""
    of_name = np.array([_class(name) for name in trace.names] or [OTHER], np.int64)
    found: Ints = of_name[trace.host.name]
    return found


def _class(name: str) -> int:
    if name.startswith(_PRODUCTS):
        return PRODUCT
    if name.startswith(_FIXED):
        return FIXED
    if name.startswith(_APART) or not name.startswith("aten::"):
        return OTHER
    return ELEMENTWISE


def product_size(name: str, signature: Signature) -> tuple[float, float] | None:
    """``(flops, elements moved)`` of a matrix product from its shapes; None if they do not tell.

    2 m n k operations on m k + k n + m n elements (times the batch).
    """
    shapes = [shape for shape in signature.shapes if len(shape) >= 2]
    if name.startswith(("aten::addmm", "aten::baddbmm")):
        shapes = shapes[-2:]
    if not name.startswith(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")) or len(shapes) < 2:
        return None
    left, right = shapes[:2]
    if left[-1] != right[-2]:
        return None
    batch, m, k, n = math.prod(left[:-2]), left[-2], left[-1], right[-1]
    return 2.0 * batch * m * n * k, float(batch * (m * k + k * n + m * n))
