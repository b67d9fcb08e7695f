"""Which line device work belongs to, on runs built by hand (no GPU here: see tests/kineto.py)."""

from __future__ import annotations

from pathlib import Path

from tests.kineto import AUTOGRAD, MAIN, ZERO_US, KinetoRun, approx, at_line, closed


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


def in_place_on_a_view(folder: Path, *, arrows: bool) -> KinetoRun:
    """``h = lin(x).relu_()`` at line 10, whose result is a view: one operator makes three nodes."""
    run = KinetoRun(folder, 500)
    run.line(0, 10)
    run.op("aten::addmm", 1, 5, seq=7)
    run.op("aten::relu_", 8, 5, seq=8)
    run.line(15, 11)
    run.op("aten::mul", 16, 5, seq=11)
    run.line(22, 12)
    for start, node, seq in (
        (30, "AddmmBackward0", 7),
        (60, "AsStridedBackward0", 10),
        (90, "CopySlices", 9),
    ):
        run.op(f"autograd::engine::evaluate_function: {node}", start, 25, AUTOGRAD, seq=seq, fwd=1)
        run.kernel(100 + start, 20, launched=start + 4, tid=AUTOGRAD, name=node)
    if arrows:  # between the product and its node: they tell which thread is torch's first
        at = {"pid": MAIN, "cat": "fwdbwd", "name": "x", "id": 1}
        run.events.append({**at, "ph": "s", "tid": MAIN, "ts": ZERO_US + 1.0})
        run.events.append({**at, "ph": "f", "tid": AUTOGRAD, "ts": ZERO_US + 30.0, "bp": "e"})
    return run


def test_all_nodes_of_an_operator_are_its_line_s(tmp_path: Path) -> None:
    profile = in_place_on_a_view(tmp_path, arrows=True).profile()
    assert at_line(profile, 10).backward_ms == approx(0.06)
    assert at_line(profile, 12).device_ms == approx(0)


def test_of_an_unknown_thread_only_the_number_itself_tells(tmp_path: Path) -> None:
    profile = in_place_on_a_view(tmp_path, arrows=False).profile()
    assert at_line(profile, 10).backward_ms == approx(0.02)


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
    run.op("aten::relu", 55, 10, AUTOGRAD, seq=1)
    run.line(75, 0, tid=AUTOGRAD)
    run.op("MmBackward0", 80, 30, AUTOGRAD, seq=7, fwd=1)
    run.kernel(200, 30, launched=85, tid=AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 10).recompute_ms == approx(0.06)
    assert at_line(profile, 10).backward_ms == approx(0.03)
    assert at_line(profile, 10).unused_nodes == 0  # its graph is not kept


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
