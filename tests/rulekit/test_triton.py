"""What a launch of a Triton kernel passes for its parameters."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit.addresses import accesses_of
from warpline.rulekit.context import Context
from warpline.rulekit.terms import follow
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


STRIDED = """\
import triton
import triton.language as tl

@triton.jit
def mean_kernel(x, out, rows, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    r = tl.arange(0, BLOCK)
    part = tl.load(x + r * cols + i, mask=r < rows)
    tl.store(out + i, tl.sum(part))

def started(kernel, programs, *given):
    kernel[(programs,)](*given, BLOCK=1024)
    #^ cost device_ms=2; kernel mean_kernel count=1 device_ms=2 grid=(64,1,1)
    #^ site triton kernel=mean_kernel calls=1 bytes=4096
"""


@pytest.mark.parametrize(("cols", "scattered"), [(512, [True, False]), (1, [False, False])])
def test_a_stride_that_was_recorded_says_what_a_launch_by_a_helper_does_not(
    cols: int, scattered: list[bool]
) -> None:
    example = read_example(STRIDED)
    context = Context(example.profile, texts(example))
    for site in context.sites("triton"):
        site.facts["numbers"] = {"rows": 900, "cols": cols}
    (kernel,) = triton_kernels(context)
    found = accesses_of(kernel, follow(kernel.source, kernel.function))
    assert [access.scattered for access in found] == scattered


def test_an_index_of_64_bits_runs_as_the_one_that_it_was_made_of() -> None:
    code = STRIDED.replace("x + r * cols + i,", "x + r.to(tl.int64) * cols + i,")
    example = read_example(code)
    context = Context(example.profile, texts(example))
    for site in context.sites("triton"):
        site.facts["numbers"] = {"rows": 900, "cols": 512}
    (kernel,) = triton_kernels(context)
    flow = follow(kernel.source, kernel.function)
    found = list(accesses_of(kernel, flow))
    assert [access.scattered for access in found] == [True, False]
    assert any(term.op == "cast" for term in flow.terms.values())  # for which tiles refuse
