"""Calls of compiled graphs, each known by its place in the code of its graph.

The runs are built by hand (see tests/kineto.py); recorded ones are in tests/captures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, KinetoRun, approx, at_line, closed
from warpline.wire.run import DeviceFacts

ADD, NORM = "triton_poi_fused_add_0", "triton_per_fused_norm_1"
FORWARD: list[tuple[str, tuple[int, ...] | None]] = [
    (ADD, (11,)),
    ("extern_kernels.mm", (12,)),
    (ADD, (13, 14)),
]
BACKWARD: list[tuple[str, tuple[int, ...] | None]] = [
    ("extern_kernels.mm", (12,)),
    (NORM, None),  # torch did not say what this one was made of
    ("torch.ops.aten._scaled_dot_product_flash_attention_backward.default", (13, 12)),
]
DEF, CALL = 4, 20
TEXT = "\n\nclass Net:\n    def forward(self, x):\n        return x\n" + "\n" * 40
NODE = "autograd::engine::evaluate_function: CompiledFunctionBackward"


def region(run: KinetoRun, start: float, frame: str, tid: int = 4100) -> None:
    """A run of the forward graph, 100 us long, whose calls begin 20, 40 and 60 us after its start."""
    run.op(f"Torch-Compiled Region: {frame}", start, 100, tid)
    run.op("CompiledFunction", start + 2, 96, tid, **({"seq": 7} if tid != AUTOGRAD else {}))
    run.op("aten::mm", start + 40, 10, tid)


def checkpointed(folder: Path) -> KinetoRun:
    """A compiled function whose forward is recomputed inside of its backward, as torch's traces have it."""
    run = KinetoRun(folder, 2000, graphs=[("0/0", False, FORWARD), ("0/1", False, FORWARD)], text=TEXT)
    run.graphs.append(("0/1", True, BACKWARD))
    run.line(0, CALL, "helper")
    run.line(5, DEF, "Net.forward")
    region(run, 10, "0/0")
    for begin, at, length, name in ((300, 30, 10, ADD), (320, 52, 20, "gemm"), (350, 70, 30, ADD)):
        run.kernel(begin, length, launched=at, name=name)
    run.line(120, CALL, "helper", again=True)
    run.op(NODE, 400, 400, AUTOGRAD, seq=7, fwd=1)
    run.op("CompiledFunctionBackward", 402, 390, AUTOGRAD, seq=7, fwd=1)
    run.mark("warpline.recompute", 405, 110, AUTOGRAD)
    run.line(408, DEF, "Net.forward", AUTOGRAD)
    region(run, 410, "0/1", AUTOGRAD)
    run.op("aten::mm", 540, 10, AUTOGRAD)
    run.op("aten::_scaled_dot_product_flash_attention_backward", 580, 20, AUTOGRAD)
    for begin, at, length, name in (
        (900, 430, 11, ADD), (920, 452, 21, "gemm"), (950, 470, 31, ADD),
        (1000, 542, 40, "gemm"), (1050, 560, 50, NORM), (1110, 585, 60, "flash_bwd"),
    ):  # fmt: skip
        run.kernel(begin, length, launched=at, name=name, tid=AUTOGRAD)
    return run


def test_a_kernel_that_is_called_twice_belongs_to_each_calls_own_lines(tmp_path: Path) -> None:
    profile = checkpointed(tmp_path).profile()
    assert at_line(profile, 11).forward_ms == approx(0.010)
    assert at_line(profile, 12).forward_ms == approx(0.020)
    assert [at_line(profile, line).forward_ms for line in (13, 14)] == [approx(0.015)] * 2
    assert closed(profile) == approx(2.0)


def test_a_recomputed_graph_is_no_part_of_the_backward_graph_around_it(tmp_path: Path) -> None:
    profile = checkpointed(tmp_path).profile()
    assert at_line(profile, 11).recompute_ms == approx(0.011)
    assert at_line(profile, 12).recompute_ms == approx(0.021)
    assert at_line(profile, 14).recompute_ms == approx(0.0155)
    # The kernel of which nothing is known has the lines of the calls beside it.
    assert at_line(profile, 12).backward_ms == approx(0.040 + 0.050 / 2)
    assert at_line(profile, 13).backward_ms == approx(0.060 + 0.050 / 2)
    assert at_line(profile, DEF).step_ms == at_line(profile, CALL).device_ms == 0


def test_the_time_to_launch_a_call_is_its_lines_and_the_rest_is_the_callers(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 200, graphs=[("0/0", False, FORWARD)], text=TEXT)
    run.line(0, CALL, "helper")
    run.line(5, DEF, "Net.forward")
    region(run, 10, "0/0")
    for at, name in ((30, ADD), (52, "gemm"), (70, ADD)):
        run.kernel(190, 1, launched=at, name=name, stream=at)
    profile = run.profile()
    assert at_line(profile, DEF).step_ms == 0
    # From one call's end to the next one's end: 34 to 60 us, 60 to 74 us.
    idle = [at_line(profile, line).idle_ms for line in (11, 12, 13, 14)]
    assert idle[1] / idle[2] == approx(26 / 7)
    assert idle[0] / idle[2] == approx(4 / 7)
    assert idle[2] == approx(idle[3])
    assert at_line(profile, CALL).idle_ms > 0.1


def test_a_graph_replayed_for_compiled_code_is_led_back_too(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    products = [("extern_kernels.mm", (12,)), ("extern_kernels.mm", (13,))]
    run.graphs.append(("0/0", False, [(ADD, (11,)), *products, (NORM, (14,))]))
    run.line(0, CALL)
    run.op("Torch-Compiled Region: 0/0", 10, 100)
    launch = run.call("cudaGraphLaunch", 50, 10)
    work = (("Memset (Device)", 1), (ADD, 10), ("Memset (Device)", 1), ("gemm", 20), ("gemm", 30), (NORM, 40))
    for at, (name, length) in enumerate(work):
        cat = "gpu_memset" if name.startswith("Memset") else "kernel"
        run.replayed(200 + 100 * at, length, launch, name=name, cat=cat)
    profile = run.profile()
    lines = [at_line(profile, line).device_ms for line in (12, 13, 14)]
    assert [round(ms, 2) for ms in lines] == [0.02, 0.03, 0.04]
    assert profile.unattributed.device_ms == 0
    assert not any("replayed CUDA graphs" in note for note in profile.notes)
    assert closed(profile) == approx(1.0)


def test_what_a_graph_replays_for_torchs_own_modules_is_the_line_that_runs_it(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.graphs.append(("0/0", False, [(ADD, (11,)), ("extern_kernels.mm", None)]))
    run.line(0, CALL)
    run.op("Torch-Compiled Region: 0/0", 10, 100)
    launch = run.call("cudaGraphLaunch", 50, 10)
    run.replayed(200, 10, launch, name=ADD)
    run.replayed(300, 20, launch, name="gemm")
    profile = run.profile()
    assert [at_line(profile, line).device_ms for line in (11, CALL)] == [approx(0.010), approx(0.020)]
    assert profile.unattributed.device_ms == 0


@pytest.mark.parametrize("said", [(), None], ids=["said to be of none", "not said"])
def test_what_was_made_of_no_line_of_the_users_is_the_line_that_runs_the_graph(
    tmp_path: Path, said: tuple[int, ...] | None
) -> None:
    """The model is made of torch's own modules, but for one line; a newer torch leaves such calls out of its
    table."""
    run = KinetoRun(tmp_path, 1000)
    run.graphs.append(("0/0", False, [(ADD, (11,)), ("extern_kernels.mm", said), (NORM, None)]))
    run.line(0, CALL)
    region(run, 10, "0/0")
    for begin, at, length, name in ((300, 30, 10, ADD), (320, 52, 20, "gemm"), (350, 70, 30, NORM)):
        run.kernel(begin, length, launched=at, name=name)
    profile = run.profile()
    assert at_line(profile, 11).device_ms == approx(0.010)
    assert at_line(profile, CALL).device_ms == approx(0.020 + 0.030)  # nothing is known of NORM either


def test_on_a_cpu_the_time_between_the_calls_is_the_compiled_functions(tmp_path: Path) -> None:
    """Kernels that Inductor compiled for the CPU leave no events: nobody can tell whose it is."""
    run = KinetoRun(tmp_path, 110, device=DeviceFacts("cpu", "EPYC", 0), text=TEXT)
    run.graphs.append(("0/0", False, [("extern_kernels.mm", (12,)), ("extern_kernels.mm", (13,))]))
    run.line(0, DEF, "Net.forward")
    region(run, 0, "0/0")
    run.op("aten::mm", 70, 10)
    profile = run.profile()
    products = [at_line(profile, line).step_ms for line in (12, 13)]
    assert products[0] == approx(products[1])
    assert at_line(profile, DEF).step_ms > products[0] + products[1]
    assert closed(profile) == approx(0.110)
