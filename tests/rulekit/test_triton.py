"""What a launch of a Triton kernel passes for its parameters."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit.context import Context
from warpline.rulekit.triton import triton_kernels

CODE = """\
import triton

@triton.jit
def mix_kernel(a, b, c, n, step, BLOCK):
    pass

mix_kernel[(64,)]({given})
#^ cost device_ms=2; kernel mix_kernel count=1 device_ms=2 grid=(64,1,1)
"""


@pytest.mark.parametrize(
    "given",
    [
        "*planes, out, size, layers, BLOCK=64",
        "*planes, n=size, step=layers, BLOCK=64",
        "first, *others, size, layers, 64",
        "x, y, out, size, layers, 64",
        "x, y, out, step=layers, n=size, BLOCK=64",
    ],
)
def test_arguments_after_unpacked_ones(given: str) -> None:
    example = read_example(CODE.format(given=given))
    (kernel,) = triton_kernels(Context(example.profile, texts(example)))
    passed = {name: kernel.passed(name) for name in ("n", "step", "BLOCK")}
    source = kernel.source
    codes = {name: source.code(found) for name, found in passed.items() if found is not None}
    assert codes == {"n": "size", "step": "layers", "BLOCK": "64"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@triton.jit", '@triton.autotune(configs=CONFIGS, key=["n"])\n@triton.jit'),
        ("BLOCK):", "BLOCK: tl.constexpr = 64):"),
    ],
)
def test_what_a_launch_may_leave_out_moves_those_before_it(old: str, new: str) -> None:
    example = read_example(CODE.format(given="*planes, out, size, layers").replace(old, new))
    (kernel,) = triton_kernels(Context(example.profile, texts(example)))
    assert [kernel.passed(name) for name in ("n", "step", "BLOCK")] == [None] * 3
