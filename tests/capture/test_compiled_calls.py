"""The calls that a compiled graph makes are read from the code that Inductor wrote for it."""

from __future__ import annotations

from warpline.capture.runner.compiled.graphs import calls_of, doubles_in

SOURCE = '''
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', """
def triton_poi_fused_add_0(in_ptr0, xnumel):
""", device_str='cuda')

class Runner:
    def call(self, args):
        # [Provenance debug handles] triton_poi_fused_add_0:1
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_0.run(arg0, buf0, 64, stream=stream0)
        # [Provenance debug handles] extern_kernels.mm:2
        extern_kernels.mm(buf0, arg1, out=buf1)
        triton_per_fused_sum_1.run(buf1, buf2, 64, stream=stream0)
        # [Provenance debug handles] triton_poi_fused_add_0:3
        triton_poi_fused_add_0.run(buf1, buf3, 64, stream=stream0)
        triton_poi_fused_add_0.run(buf3, buf4, 64, stream=stream0)
'''
STACKS = {"triton_poi_fused_add_0:1": ["a"], "extern_kernels.mm:2": ["b"], "triton_poi_fused_add_0:3": ["c"]}


def test_calls_come_in_order_each_with_its_own_stacks() -> None:
    assert calls_of(SOURCE, STACKS) == [
        ("triton_poi_fused_add_0", ["a"]),
        ("extern_kernels.mm", ["b"]),
        ("triton_per_fused_sum_1", ()),
        ("triton_poi_fused_add_0", ["c"]),
        ("triton_poi_fused_add_0", ()),
    ]


def test_without_numbers_in_the_code_the_table_has_the_order() -> None:
    unnumbered = "\n".join(line for line in SOURCE.splitlines() if "handles" not in line)
    assert calls_of("", STACKS) == calls_of(unnumbered, STACKS)
    assert calls_of(unnumbered, STACKS) == [
        ("triton_poi_fused_add_0", ["a"]),
        ("extern_kernels.mm", ["b"]),
        ("triton_poi_fused_add_0", ["c"]),
    ]


def test_kernels_in_float64_by_their_signatures() -> None:
    """``meta`` is as Inductor 2.11 writes it; one number in float64 does not make the rest so."""
    kernel = """
{name} = async_compile.triton('{name}', '''
@triton_heuristics.pointwise(
    triton_meta={{'signature': {{{signature}, 'xnumel': 'i32', 'XBLOCK': 'constexpr'}}, 'device': None}},
)
''', device_str='cuda')
"""
    wide = kernel.format(name="wide", signature="'in_ptr0': '*fp64', 'in_ptr1': '*fp32', 'out_ptr0': '*fp64'")
    narrow = kernel.format(
        name="one", signature="'in_ptr0': '*fp64', 'in_ptr1': '*fp32', 'out_ptr0': '*fp32'"
    )
    assert doubles_in(wide + narrow + "names = ['*fp64'] * 9") == {"wide"}
