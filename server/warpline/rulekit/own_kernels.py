"""Kernels that the user wrote, and so can change: Triton functions, and CUDA in their Python files."""

from __future__ import annotations

import re
from functools import lru_cache

from warpline.model.kernel_name import readable
from warpline.model.profile import Kernel
from warpline.rulekit.context import Context
from warpline.rulekit.triton import definition


def is_own(context: Context, kernel: Kernel) -> bool:
    """Whether the text of one of the user's files defines ``kernel``. cuBLAS's, torch's and other
    packages' kernels are as they are: of those only the sizes they are given can be changed."""
    if kernel.kind != "kernel":
        return False
    name = readable(kernel.name).partition("<")[0]
    if kernel.name.isidentifier() and definition(context, name) is not None:
        return True
    return any(name in _in_cuda(text) for file in context.profile.sources if (text := context.text(file)))


@lru_cache(maxsize=64)
def _in_cuda(text: str) -> frozenset[str]:
    """Names of the ``__global__`` functions in CUDA source that a Python file holds as a string."""
    return frozenset(re.findall(r"__global__[^;{(]*?(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(", text))
