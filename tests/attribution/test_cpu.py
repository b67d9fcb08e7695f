"""Where the CPU is the device: operators themselves are its work, on runs built by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, KinetoRun, approx, at_line, closed
from warpline.attribution import attribute
from warpline.wire.run import DeviceFacts, Site

CPU = DeviceFacts("cpu", "a CPU", 1)


def cpu_run(folder: Path, window_us: float, timed_us: float | None = None) -> KinetoRun:
    return KinetoRun(folder, window_us, timed_us=timed_us, device=CPU)


def test_an_op_s_own_time_leaves_out_what_it_calls(tmp_path: Path) -> None:
    run = cpu_run(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::linear", 100, 400)
    run.op("aten::addmm", 150, 300)
    run.line(600, 11)
    profile = run.profile()
    line = at_line(profile, 10)
    assert line.device_ms == approx(0.4)
    assert {op.name: op.device_ms for op in line.ops} == {
        "aten::linear": approx(0.1),
        "aten::addmm": approx(0.3),
    }
    assert {op.name: op.outer for op in line.ops} == {"aten::linear": True, "aten::addmm": False}
    assert {op.name: op.cpu_ms for op in line.ops} == {
        "aten::linear": approx(0.4),
        "aten::addmm": approx(0.3),
    }
    assert line.idle_ms == approx(0.2)
    assert at_line(profile, 11).idle_ms == approx(0.4)
    assert line.launches == 1  # the call that works; the other only calls it
    assert closed(profile) == approx(1.0)


def test_python_around_a_recomputed_forward_goes_with_it(tmp_path: Path) -> None:
    run = cpu_run(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::relu", 10, 100, seq=7)
    run.line(120, 11)
    run.op("autograd::engine::evaluate_function: ReluBackward0", 200, 400, seq=7, fwd=1)
    run.op("ReluBackward0", 210, 380, seq=7, fwd=1)
    run.mark("warpline.recompute", 220, 300)
    run.op("aten::relu", 300, 100, seq=0)
    run.op("aten::threshold_backward", 530, 50)
    line = at_line(run.profile(), 10)
    assert line.recompute_ms == approx(0.1 + 0.23)
    assert line.backward_ms == approx(0.02 + 0.05)


def test_all_figures_are_brought_to_the_unprofiled_step(tmp_path: Path) -> None:
    """No records to blame, so the slowdown is shared in proportion."""
    run = cpu_run(tmp_path, 1000, timed_us=500)
    run.op("aten::mul", 100, 600, AUTOGRAD)
    profile = run.profile()
    assert profile.steps.step_ms == approx(0.5)
    assert profile.steps.slowdown == approx(2)
    assert profile.unattributed.device_ms == approx(0.3)
    assert closed(profile) == approx(0.5)


def test_many_small_ops_pay_for_their_recording(tmp_path: Path) -> None:
    """One op of 500 us and 100 of 2 us, with 200 us of slowdown: the slowdown is the small ones'."""
    run = cpu_run(tmp_path, 1000, timed_us=800)
    run.line(0, 10)
    run.op("aten::mm", 0, 500)
    run.line(500, 11)
    for at in range(100):
        run.op("aten::add", 500 + 5 * at, 2)
    profile = run.profile()
    assert at_line(profile, 10).device_ms == pytest.approx(0.5, rel=0.02)
    assert at_line(profile, 11).step_ms == pytest.approx(0.3, rel=0.05)
    assert closed(profile) == approx(0.8)


def test_between_the_ops_of_a_backward_pass_their_recording_is_paid_for_there(tmp_path: Path) -> None:
    """100 us of slowdown for 100 ops. Those of the backward pass are the forward's line's, but the time
    between them, which has what their records cost, is ``backward()``'s."""
    run = cpu_run(tmp_path, 1000, timed_us=900)
    run.line(0, 10)
    for at in range(50):
        run.op("aten::relu", 5 * at, 4, seq=at + 1)
    run.line(500, 11)
    for at in range(50):
        node = "autograd::engine::evaluate_function: ReluBackward0"
        run.op(node, 502 + 10 * at, 4, seq=at + 1, fwd=1)
    profile = run.profile()
    assert at_line(profile, 11).step_ms == pytest.approx(0.3 - 0.05, rel=0.02)
    forward = at_line(profile, 10)
    assert forward.idle_ms == pytest.approx(0.3 - 0.05, rel=0.02)
    assert forward.device_ms == pytest.approx(0.4, rel=0.02)
    assert closed(profile) == approx(0.9)


def test_a_line_inside_the_loader_loads_for_all_of_its_host_time(tmp_path: Path) -> None:
    """However much of the profiler's cost is taken off: ``loader_ms`` is a part of ``cpu_ms``."""
    run = cpu_run(tmp_path, 1000, timed_us=800)
    run.line(0, 10)
    run.op("aten::mm", 0, 500)
    run.line(500, 11)
    run.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 500, 400)
    for at in range(100):
        run.op("aten::add", 500 + 4 * at, 3.9)
    run.line(900, 12)
    profile = run.profile()
    assert at_line(profile, 11).loader_ms == approx(at_line(profile, 11).cpu_ms)
    assert at_line(profile, 12).loader_ms == 0 < at_line(profile, 12).cpu_ms
    assert closed(profile) == approx(0.8)


def test_work_of_another_thread_counts_while_the_main_one_waits(tmp_path: Path) -> None:
    run = cpu_run(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::mm", 0, 300)
    run.line(300, 11)  # waits for the thread
    run.line(0, 20, "helper", AUTOGRAD)
    run.op("aten::sort", 200, 500, AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 10).step_ms == approx(0.3)
    assert at_line(profile, 20).device_ms == approx(0.5)
    assert at_line(profile, 20).step_ms == approx(0.4)  # 100 us of it ran beside the main thread's work
    assert at_line(profile, 11).idle_ms == approx(0.3)
    assert profile.steps.device_busy_percent == approx(70)
    assert closed(profile) == approx(1.0)


def test_python_inside_an_op_is_not_the_op_s_work(tmp_path: Path) -> None:
    """An own Function: its op is around the lines of its forward."""
    run = cpu_run(tmp_path, 1000)
    run.line(0, 10)
    run.op("Own", 100, 800)
    run.line(200, 20, "helper")
    run.op("aten::fmod", 300, 100)
    run.line(800, 10)
    profile = run.profile()
    inner = at_line(profile, 20)
    assert inner.device_ms == approx(0.1)
    assert inner.idle_ms == approx(0.5)
    assert inner.ops[0].outer
    assert at_line(profile, 10).device_ms == approx(0.2)
    assert closed(profile) == approx(1.0)


def test_a_line_that_calls_back_is_one_call(tmp_path: Path) -> None:
    run = cpu_run(tmp_path, 1000)
    for at in range(3):
        run.line(100 * at, 10)
        run.line(100 * at + 20, 20, "helper")
        run.line(100 * at + 40, 10, again=True)  # the helper returned
        run.line(100 * at + 60, 11)
    profile = run.profile()
    assert at_line(profile, 10).calls == 3
    assert at_line(profile, 20).calls == 3
    assert at_line(profile, 11).calls == 3


def test_between_the_ops_of_another_thread_the_main_one_waits(tmp_path: Path) -> None:
    """The training loop runs in a thread: two ops of 100 us, and 300 us of Python between them."""
    run = cpu_run(tmp_path, 1000)
    run.line(0, 11)  # waits for the thread all the time
    run.line(0, 20, "helper", AUTOGRAD)
    run.op("aten::mm", 100, 100, AUTOGRAD)
    run.op("aten::mm", 500, 100, AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 20).step_ms == approx(0.2)
    assert at_line(profile, 11).idle_ms == approx(0.8)
    assert profile.steps.device_busy_percent == approx(20)


def test_a_training_loop_in_a_thread_is_seen_there(tmp_path: Path) -> None:
    """The main thread calls no operator: what Python does in the loop stands on the lines of the loop."""
    run = cpu_run(tmp_path, 1000)
    run.line(0, 11)
    run.line(0, 20, "helper", AUTOGRAD)
    run.op("aten::mm", 100, 100, AUTOGRAD)
    run.mark("Optimizer.step#SGD.step", 500, 200, AUTOGRAD)
    run.op("aten::add_", 600, 100, AUTOGRAD)
    profile = run.profile()
    assert at_line(profile, 20).idle_ms == approx(0.8)
    assert [line.line for line in profile.lines] == [20]
    assert closed(profile) == approx(1.0)


def test_a_step_that_does_more_than_the_others_is_noted(tmp_path: Path) -> None:
    """Five steps with an op each, and an evaluation in the third."""
    run = cpu_run(tmp_path, 1000)
    run.steps = 5
    run.facts["flags"] = {"loss_not_finite_at": 6}
    run.line(0, 10)
    for at in range(5):
        run.op("aten::mm", 200 * at + 10, 50)
    assert not any("operator calls" in note for note in run.profile().notes)
    for at in range(3):
        run.op("aten::argmax", 470 + 10 * at, 5)
    notes = run.profile().notes
    assert any(note.startswith("one of the 5 captured steps made 4.0 times as many") for note in notes)
    assert "the loss was not finite at backward pass 7 of the script" in notes


@pytest.mark.parametrize(("queued_us", "steps", "told"), [(300, 1, "step"), (300, 5, "5 steps"), (90, 1, "")])
def test_a_script_that_others_kept_from_running_is_noted(
    queued_us: int, steps: int, told: str, tmp_path: Path
) -> None:
    run = cpu_run(tmp_path, 1000)
    run.steps = steps
    run.facts["queued_ns"] = queued_us * 1000
    run.line(0, 10)
    run.op("aten::mm", 10, 50)
    found = [note for note in run.profile().notes if "kept the script from running" in note]
    assert len(found) == bool(told)
    assert not told or f"for 30 % of the captured {told}:" in found[0]


@pytest.mark.parametrize(("queued_us", "told"), [(300, True), (200, False)])
def test_sampled_lines_of_a_crowded_machine_are_noted(queued_us: int, told: bool, tmp_path: Path) -> None:
    run = cpu_run(tmp_path, 1000)
    run.facts["queued_ns"] = queued_us * 1000
    run.facts["samples"] = {"total": 2000, "lines": []}
    run.line(0, 10)
    run.op("aten::mm", 10, 50)
    found = [note for note in run.profile().notes if "may be off by a tenth of the step" in note]
    assert len(found) == told
    assert not told or found[0].startswith("other processes kept the script from running for 30 % of the")


def test_steps_that_were_quicker_under_the_profiler_are_noted(tmp_path: Path) -> None:
    for timed_us, noted in ((1000, False), (1200, True)):
        run = cpu_run(tmp_path, 1000, timed_us=timed_us)
        run.op("aten::mul", 100, 600)
        assert any("were faster" in note for note in run.profile().notes) == noted


def test_long_timed_steps_of_which_none_was_captured_are_noted(tmp_path: Path) -> None:
    """Nine steps of 1 ms, and one with an evaluation of 9 ms."""
    run = cpu_run(tmp_path, 1000)
    run.line(0, 10)
    run.op("aten::mm", 0, 500)
    trace = run.trace()
    for last, noted in ((1_000_000, False), (10_000_000, True)):
        manifest = replace(trace.manifest, timed_ns=(1_000_000,) * 9 + (last,))
        notes = attribute(replace(trace, manifest=manifest)).notes
        assert any("47 % of the time" in note and "an evaluation" in note for note in notes) == noted
    loader = Site("loader", "train.py", 3, "", {"num_workers": 4})
    notes = attribute(replace(trace, manifest=manifest, facts=replace(trace.facts, sites=(loader,)))).notes
    assert any("47 % of the time" in note and "a loader's workers" in note for note in notes)
