"""Kernels by name."""

from __future__ import annotations

import re

#: Elementwise and reduction kernels of torch: each reads and writes whole tensors and computes little.
_POINTWISE = re.compile(r"elementwise_kernel|reduce_kernel|CatArrayBatchedCopy|indexSelect|index_elementwise")


def is_pointwise(kernel: str) -> bool:
    return _POINTWISE.search(kernel) is not None
