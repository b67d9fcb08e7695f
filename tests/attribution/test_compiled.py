"""Fused kernels and the library calls of compiled graphs.

The runs are built by hand: there is no GPU here (see tests/kineto.py).
"""

from __future__ import annotations

from pathlib import Path

from tests.kineto import AUTOGRAD, KinetoRun, approx, at_line, closed


def test_a_fused_kernel_is_shared_by_its_lines(tmp_path: Path) -> None:
    name = "triton_poi_fused_add_gelu_mul_0"
    run = KinetoRun(tmp_path, 1000, compiled=[(name, (11, 12, 13), False)])
    run.line(0, 10)
    run.kernel(50, 600, launched=10, name=name)
    profile = run.profile()
    assert [at_line(profile, line).device_ms for line in (11, 12, 13)] == [approx(0.2)] * 3
    assert at_line(profile, 10).device_ms == 0
    (group,) = profile.groups
    assert group.device_ms == approx(0.6)
    assert [line for _, line in group.lines] == [11, 12, 13]
    assert at_line(profile, 12).group == (0,)
    assert closed(profile) == approx(1.0)


def compiled_run(folder: Path, listed: int) -> KinetoRun:
    """Line 10 runs a graph compiled of lines 11 (two products) and 12, with a fused kernel between."""
    products = [(f"extern_kernels.{name}", (line,), back) for name, line, back in (
        ("mm", 11, False), ("mm", 11, False), ("mm", 12, False), ("mm", 12, True), ("mm", 11, True),
    )]  # fmt: skip
    run = KinetoRun(folder, 2000, compiled=[("triton_poi_fused_gelu_0", (11, 12), False), *products[:listed]])
    run.line(0, 10)
    run.op("Torch-Compiled Region: 0/0", 1, 200)
    run.op("CompiledFunction", 2, 190, seq=5)
    for at, length in enumerate((100, 110, 120)):
        run.op("aten::mm", 10 + 20 * at, 15)
        run.kernel(100 + 150 * at, length, launched=12 + 20 * at)
    run.kernel(560, 50, launched=80, name="triton_poi_fused_gelu_0")
    run.line(300, 20)
    run.op("autograd::engine::evaluate_function: CompiledFunctionBackward", 310, 200, AUTOGRAD, seq=5, fwd=1)
    run.op("CompiledFunctionBackward", 312, 190, AUTOGRAD, seq=5, fwd=1)
    for at, length in enumerate((200, 210)):
        run.op("aten::mm", 320 + 20 * at, 15, AUTOGRAD)
        run.kernel(700 + 250 * at, length, launched=322 + 20 * at, tid=AUTOGRAD)
    return run


def test_library_calls_of_a_compiled_graph_go_to_their_lines(tmp_path: Path) -> None:
    profile = compiled_run(tmp_path, 5).profile()
    first, second = at_line(profile, 11), at_line(profile, 12)
    assert first.forward_ms == approx(0.1 + 0.11 + 0.025)
    assert second.forward_ms == approx(0.12 + 0.025)
    assert second.backward_ms == approx(0.2)
    assert first.backward_ms == approx(0.21)
    assert at_line(profile, 10).device_ms == 0
    assert {op.name for op in second.ops} == {"aten::mm"}
    assert closed(profile) == approx(2.0)


def test_library_calls_that_do_not_match_the_list_are_not_guessed(tmp_path: Path) -> None:
    profile = compiled_run(tmp_path, 4).profile()  # one of two backward products is not listed
    assert at_line(profile, 10).backward_ms == approx(0.41)
    assert at_line(profile, 11).forward_ms == approx(0.1 + 0.11 + 0.025)
