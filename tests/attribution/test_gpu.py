"""The device's time and its idle moments, on runs built by hand (no GPU here: see tests/kineto.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, MAIN, KinetoRun, at_line, closed
from warpline.attribution.kernels import tensor_cores


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=1e-9)


def test_kernel_time_goes_to_the_launching_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::mm", 5, 10)
    run.kernel(20, 300, launched=8, name="gemm")
    run.line(30, 11)
    run.op("aten::relu", 35, 10)
    run.kernel(320, 500, launched=38, name="relu")
    run.line(50, 12)
    profile = run.profile()
    assert at_line(profile, 10).device_ms == approx(0.3)
    assert at_line(profile, 11).device_ms == approx(0.5)
    assert at_line(profile, 11).kernels[0].name == "relu"
    assert at_line(profile, 10).ops[0].name == "aten::mm"
    assert at_line(profile, 10).ops[0].device_ms == approx(0.3)
    assert profile.totals["busy_ms"] == approx(0.8)
    assert closed(profile) == approx(1.0)
    # 20 us before the first kernel, at line 10; the 180 us after the last, at line 12.
    assert at_line(profile, 12).idle_ms == approx(0.18)
    assert profile.steps.device_busy_percent == approx(80)


def test_backward_goes_to_the_forward_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::linear", 1, 20, seq=41)
    run.op("aten::addmm", 5, 12, seq=41)
    run.kernel(20, 100, launched=8)
    run.line(30, 11)
    run.op("aten::gelu", 31, 10, seq=42)
    run.kernel(120, 100, launched=33)
    run.line(50, 12)  # loss.backward()
    for seq, node, start in ((42, "GeluBackward0", 100), (41, "AddmmBackward0", 200)):
        run.op(f"autograd::engine::evaluate_function: {node}", start, 60, AUTOGRAD, seq=seq, fwd=1)
        run.op(node, start + 2, 50, AUTOGRAD, seq=seq, fwd=1)
        run.op("aten::mm", start + 4, 20, AUTOGRAD)
        run.kernel(300 + start, 100, launched=start + 5, tid=AUTOGRAD)
    run.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 270, 30, AUTOGRAD)
    run.op("torch::autograd::AccumulateGrad", 272, 20, AUTOGRAD)
    run.kernel(600, 50, launched=275, name="copy", tid=AUTOGRAD)
    run.kernel(700, 10, launched=310, name="finish", tid=AUTOGRAD)  # beside all nodes
    profile = run.profile()
    assert at_line(profile, 10).forward_ms == approx(0.1)
    assert at_line(profile, 10).backward_ms == approx(0.15)  # its node, and the accumulation after it
    assert at_line(profile, 11).backward_ms == approx(0.1)
    assert at_line(profile, 12).device_ms == approx(0.01)
    assert profile.unattributed.device_ms == 0
    phases = {kernel.phase for kernel in at_line(profile, 10).kernels}
    assert phases == {"forward", "backward"}
    assert closed(profile) == approx(1.0)


def test_a_hooked_node_is_found_by_the_call_inside(tmp_path: Path) -> None:
    """torch leaves the number off the node when a hook's op comes first."""
    run = KinetoRun(tmp_path, 500)
    run.line(0, 10)
    run.op("aten::tanh", 1, 10, seq=7)
    run.line(20, 11)
    run.op("autograd::engine::evaluate_function: TanhBackward0", 30, 60, AUTOGRAD)
    run.line(35, 20, "helper", AUTOGRAD)
    run.op("aten::mul", 36, 5, AUTOGRAD)
    run.kernel(100, 10, launched=37, tid=AUTOGRAD, name="hook")
    run.line(45, 0, tid=AUTOGRAD)
    run.op("TanhBackward0", 50, 30, AUTOGRAD, seq=7, fwd=1)
    run.kernel(110, 30, launched=55, tid=AUTOGRAD, name="tanh_backward")
    profile = run.profile()
    assert at_line(profile, 20).backward_ms == approx(0.01)
    assert at_line(profile, 10).backward_ms == approx(0.03)


def test_recomputation_is_a_phase_of_its_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 500)
    run.line(0, 10, "Net.forward")
    run.op("aten::mm", 1, 10, seq=7)
    run.line(20, 11)
    run.op("autograd::engine::evaluate_function: MmBackward0", 30, 200, AUTOGRAD, seq=7, fwd=1)
    run.mark("warpline.recompute", 35, 40, AUTOGRAD)
    run.line(36, 10, "Net.forward", AUTOGRAD)
    run.op("aten::mm", 40, 10, AUTOGRAD, seq=0)
    run.kernel(100, 60, launched=42, tid=AUTOGRAD)
    run.line(75, 0, tid=AUTOGRAD)
    run.op("MmBackward0", 80, 30, AUTOGRAD, seq=7, fwd=1)
    run.kernel(200, 30, launched=85, tid=AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 10).recompute_ms == approx(0.06)
    assert at_line(profile, 10).backward_ms == approx(0.03)


def test_overlap_of_two_streams_is_counted_once(tmp_path: Path) -> None:
    """A long kernel beside a short one that nothing waits for: the short one costs nothing."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(50, 800, launched=1, name="long")
    run.line(10, 11)
    run.kernel(100, 300, launched=11, name="beside", stream=20)
    profile = run.profile()
    assert at_line(profile, 11).device_ms == approx(0.3)
    assert at_line(profile, 11).step_ms == approx(at_line(profile, 11).idle_ms)
    assert at_line(profile, 10).step_ms - at_line(profile, 10).idle_ms == approx(0.8)
    assert closed(profile) == approx(1.0)


def test_the_critical_path_leads_through_what_was_waited_for(tmp_path: Path) -> None:
    """A | a reduction in another stream waits for A | C waits for the reduction; B runs beside it."""
    run = KinetoRun(tmp_path, 1000)
    for number, name, start, length, stream in (
        (10, "A", 0, 200, 7),
        (11, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 202, 400, 20),
        (12, "B", 200, 100, 7),
        (13, "C", 604, 396, 7),
    ):
        run.line(number - 10, number)
        run.kernel(start, length, launched=number - 9.5, name=name, stream=stream)
    profile = run.profile()
    assert at_line(profile, 12).device_ms == approx(0.1)
    assert at_line(profile, 12).step_ms < 0.003  # the 2 us before the reduction
    assert at_line(profile, 11).communication_ms == approx(0.4)
    assert at_line(profile, 11).step_ms == pytest.approx(0.4, abs=0.006)
    assert closed(profile) == approx(1.0)


@pytest.mark.parametrize("kind", ["loop", "sync", "loader"])
def test_planted_idle_time_lands_on_its_line(tmp_path: Path, kind: str) -> None:
    """300 us in which the device has nothing to do: in Python, after a sync, in the loader."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(2, 300, launched=1)
    if kind == "sync":
        run.line(10, 20)
        run.call("cudaStreamSynchronize", 11, 291)
    elif kind == "loader":
        run.line(302, 20)
        run.mark("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 302, 300)
    else:
        run.line(302, 20)
    run.line(602, 11)
    run.kernel(610, 390, launched=604)
    profile = run.profile()
    planted = at_line(profile, 20)
    assert planted.idle_ms == pytest.approx(0.3, rel=0.05)
    assert planted.step_ms == approx(planted.idle_ms)
    assert planted.sync_ms == approx(0.291 if kind == "sync" else 0)
    assert planted.loader_ms == (pytest.approx(0.3, rel=0.05) if kind == "loader" else 0)
    assert closed(profile) == approx(1.0)


def test_asynchronous_copies_are_not_syncs(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 200)
    run.line(0, 10)
    run.kernel(20, 100, launched=2, name="Memcpy HtoD (Pinned -> Device)", cat="gpu_memcpy", bytes=4096)
    profile = run.profile()
    line = at_line(profile, 10)
    assert line.sync_ms == 0
    assert line.copy_ms == approx(0.1)
    assert line.kernels[0].kind == "copy"
    assert line.kernels[0].bytes == 4096


def test_idle_time_is_what_the_unprofiled_step_leaves(tmp_path: Path) -> None:
    """Profiled: 400 busy, 600 idle. Unprofiled: 700. Kernel time stays, idle time becomes 300."""
    run = KinetoRun(tmp_path, 1000, timed_us=700)
    run.line(0, 10)
    run.line(200, 11)
    run.kernel(600, 400, launched=590)
    profile = run.profile()
    assert at_line(profile, 11).device_ms == approx(0.4)
    assert profile.totals["idle_ms"] == approx(0.3)
    assert profile.steps.slowdown == approx(1000 / 700)
    assert closed(profile) == approx(0.7)


def test_several_steps_are_a_mean(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 2000, steps=2)
    for step in range(2):
        run.line(1000 * step, 10)
        run.op("aten::mm", 1000 * step + 1, 5)
        run.kernel(1000 * step + 10, 100 + 200 * step, launched=1000 * step + 2)
    profile = run.profile()
    line = at_line(profile, 10)
    assert (line.device_ms, line.launches, line.ops[0].count, line.kernels[0].count) == (approx(0.2), 1, 1, 1)
    assert line.calls == 1
    assert closed(profile) == approx(1.0)


def test_replayed_graphs_are_unattributed_and_never_idle(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    call = run.call("cudaGraphLaunch", 5, 10)
    for at in range(4):
        run.replayed(20 + at * 200, 200, call, name=f"kernel{at}", **{"graph node id": at + 1})
    profile = run.profile()
    assert profile.unattributed.device_ms == approx(0.8)
    assert profile.unattributed.step_ms == approx(0.8)
    assert at_line(profile, 10).idle_ms == approx(0.2)
    assert any("CUDA graphs" in note for note in profile.notes)
    assert closed(profile) == approx(1.0)


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


def test_memory_at_the_peak_and_kept(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 3000, steps=3)
    for step in range(3):
        at, address = 1000.0 * step, 1000 * step
        held = step * 64
        run.line(at, 10)
        run.memory(at + 1, 512, address + 1, 4096 + held + 512)
        run.line(at + 10, 11)
        run.memory(at + 11, 1024, address + 2, 4096 + held + 1536)  # the peak
        run.memory(at + 20, -512, address + 1, 4096 + held + 1024)
        run.memory(at + 21, -1024, address + 2, 4096 + held)
        run.line(at + 30, 12)
        run.memory(at + 31, 64, address + 3, 4096 + held + 64)  # never freed
    profile = run.profile()
    assert at_line(profile, 10).memory_bytes == 512
    assert at_line(profile, 11).memory_bytes == 1024
    assert at_line(profile, 12).memory_bytes == 128  # of the two steps before the last
    assert at_line(profile, 12).kept_bytes == 64
    assert at_line(profile, 11).kept_bytes == 0
    assert profile.totals["peak_bytes"] == 4096 + 128 + 1536


def test_marks_have_their_share_of_the_step(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, timed_us=500)
    run.line(0, 10)
    run.mark("attention", 100, 250)
    run.mark("nvtx:data:load", 400, 100)
    run.mark("Optimizer.step#SGD.step", 600, 100)
    run.kernel(200, 50, launched=150)
    run.kernel(600, 70, launched=550)
    profile = run.profile()
    attention, load = profile.marks
    assert (attention.name, attention.share, attention.wall_ms) == ("attention", approx(0.25), approx(0.125))
    assert attention.device_ms == approx(0.05)
    assert (load.name, load.domain, load.count) == ("load", "data", 1)


def test_the_roofline_tells_what_limits_a_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100_000)
    run.line(0, 10)
    size, types = [8192, 8192], ["c10::BFloat16", "c10::BFloat16"]
    run.op("aten::mm", 1, 20, dims=[size, size], types=types)
    ideal_us = 2 * 8192**3 / 989.4e12 * 1e6
    run.kernel(50, 2 * ideal_us, launched=5)
    run.line(30, 11)
    run.op("aten::add", 31, 20, dims=[size, size, []], types=[*types, "Scalar"])
    ideal_add_us = 3 * 8192**2 * 2 / 4.8e12 * 1e6
    run.kernel(5000, 4 * ideal_add_us, launched=35)
    profile = run.profile()
    product, addition = at_line(profile, 10).roofline, at_line(profile, 11).roofline
    assert product is not None
    assert addition is not None
    assert (product.bound, product.percent_of_peak) == ("compute", pytest.approx(50, rel=1e-3))
    assert (addition.bound, addition.percent_of_peak) == ("memory", pytest.approx(25, rel=1e-3))
    assert product.flops == 2 * 8192**3


def test_an_unknown_device_has_no_roofline(tmp_path: Path) -> None:
    from warpline.model.run import DeviceFacts

    run = KinetoRun(tmp_path, 100, device=DeviceFacts("cuda", "Abacus 9", 1))
    run.line(0, 10)
    run.op("aten::mm", 1, 5, dims=[[8, 8], [8, 8]], types=["float", "float"])
    run.kernel(10, 20, launched=2)
    profile = run.profile()
    assert at_line(profile, 10).roofline is None
    assert any("Abacus 9" in note for note in profile.notes)


def test_launch_shapes_and_occupancy_stay_with_the_kernel(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 100)
    run.line(0, 10)
    shape = {"grid": [8, 2, 1], "block": [256, 1, 1], "registers per thread": 40, "shared memory": 128}
    run.kernel(10, 20, launched=2, **shape, **{"est. achieved occupancy %": 31.5})
    (kernel,) = at_line(run.profile(), 10).kernels
    assert (kernel.grid, kernel.block) == ((8, 2, 1), (256, 1, 1))
    assert (kernel.registers, kernel.shared_bytes, kernel.occupancy_percent) == (40, 128, 31.5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", True),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", True),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(…)", True),
        ("ampere_sgemm_128x64_tn", False),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>(…)", False),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", False),
        ("my_own_kernel", None),
    ],
)
def test_tensor_cores_are_told_by_the_name(name: str, expected: bool | None) -> None:
    assert tensor_cores(name) is expected


def test_garbage_collections_are_timed_at_their_line(tmp_path: Path) -> None:
    from tests.kineto import ns

    run = KinetoRun(tmp_path, 1000, facts={"gc_ns": [[ns(400), ns(500)]]})
    run.line(0, 10)
    run.line(300, 11)
    run.kernel(900, 50, launched=890)
    assert at_line(run.profile(), 11).gc_ms == approx(0.1)


def test_a_malformed_event_costs_only_itself(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(20, 300, launched=8)
    run.events.append({"ph": "X", "cat": "kernel", "name": 7, "ts": "soon", "args": []})
    run.records.append((2**62, 99, 5))
    run.locations.append((44, 5, 9))
    profile = run.profile()
    assert at_line(profile, 10).device_ms == approx(0.3)
    assert {note for note in profile.notes if "malformed" in note}


def test_nothing_at_all_is_still_a_profile(tmp_path: Path) -> None:
    profile = KinetoRun(tmp_path, 1000).profile()
    assert profile.lines == ()
    assert profile.unattributed.step_ms == approx(1.0)
    assert MAIN not in {cost.line for cost in profile.lines}
