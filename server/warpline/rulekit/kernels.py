"""Kernels and operators by name."""

from __future__ import annotations

import re

#: Elementwise, reducing and normalising kernels of torch, and those that move numbers to places that follow
#: from their own: each reads and writes whole tensors and computes little.
_POINTWISE = re.compile(
    r"elementwise_kernel|reduce_kernel|CatArrayBatchedCopy|indexSelect|index_elementwise|fused_dropout"
    r"|layer_norm|GammaBeta|softmax|SoftMax|batch_norm|bn_(fw|bw)_"
    r"|roll_cuda_kernel|triu_tril_kernel|reflection_pad\w*_out_kernel|upsample_(nearest|bilinear)\w*_out_"
)
#: Operators that compute much with each number they read: nothing is fused across them.
_PRODUCTS = re.compile(
    r"aten::(mm|addmm|bmm|baddbmm|mv|_scaled_dot_product|_flash_attention|_efficient_attention|\w*conv"
    r"|_cudnn_rnn|_addmm_activation|_grouped_mm|_scaled_mm)"
)
#: Matrix products alone.
MATMULS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"})
#: How names of operators and kernels of compiled code begin.
COMPILED = ("CompiledFunction", "Torch-Compiled", "triton_")


def is_pointwise(kernel: str) -> bool:
    """Whether a kernel mostly moves memory: elementwise ones, reductions, softmax and norms, by torch's
    names."""
    return _POINTWISE.search(kernel) is not None


def is_product(operator: str) -> bool:
    """Whether an operator is a matrix product."""
    return _PRODUCTS.match(operator) is not None
