"""What functions take with what they call, from the order of the line records."""

from __future__ import annotations

from pathlib import Path

from tests.kineto import AUTOGRAD, KinetoRun, approx
from warpline.wire.run import DeviceFacts

CPU = DeviceFacts("cpu", "a CPU", 1)


def times(run: KinetoRun) -> dict[str, tuple[float, float]]:
    """Function -> (own lines, total), ms."""
    return {one.function: (one.step_ms, one.total_ms) for one in run.profile().functions}


def test_a_total_has_what_the_function_calls(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(100, 20, "Net.forward")
    run.line(200, 30, "helper")
    run.op("aten::mm", 250, 100)
    run.line(400, 20, "Net.forward", again=True)
    run.line(600, 10, again=True)
    assert times(run) == {
        "<module>": (approx(0.5), approx(1.0)),
        "Net.forward": (approx(0.3), approx(0.5)),
        "helper": (approx(0.2), approx(0.2)),
    }


def test_a_helper_belongs_to_each_caller_as_long_as_it_took_there(tmp_path: Path) -> None:
    """Equal numbers of calls, and times that are not: dividing them by calls would be wrong."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(100, 30, "helper")
    run.line(700, 10, again=True)
    run.line(800, 20, "Net.forward")
    run.line(850, 30, "helper")
    run.line(900, 20, "Net.forward", again=True)
    run.line(950, 10, again=True)
    assert times(run)["Net.forward"] == (approx(0.1), approx(0.15))
    assert times(run)["helper"] == (approx(0.65), approx(0.65))


def test_a_caller_that_is_met_late_was_there_all_along(tmp_path: Path) -> None:
    """The capture begins inside a call."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 30, "helper")
    run.line(200, 20, "Net.forward", again=True)
    run.line(500, 10, again=True)
    run.line(600, 20, "Net.forward")
    run.line(800, 10, again=True)
    assert times(run) == {
        "<module>": (approx(0.3), approx(1.0)),
        "Net.forward": (approx(0.5), approx(0.7)),
        "helper": (approx(0.2), approx(0.2)),
    }


def test_recursion_counts_once(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(100, 20, "Net.forward")
    run.line(200, 30, "helper")
    run.line(300, 20, "Net.forward")
    run.line(400, 30, "helper", again=True)
    run.line(500, 20, "Net.forward", again=True)
    run.line(600, 10, again=True)
    assert times(run)["Net.forward"] == (approx(0.3), approx(0.5))
    assert times(run)["helper"] == (approx(0.2), approx(0.3))


def test_a_generator_that_goes_on_is_no_caller(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU, text="def helper():\n    yield 1\n")
    run.line(0, 10)
    run.line(100, 30, "helper", again=True)  # it was begun before the capture
    run.line(300, 10, again=True)
    run.line(600, 30, "helper", again=True)
    run.line(700, 10, again=True)
    assert times(run) == {"<module>": (approx(0.7), approx(1.0)), "helper": (approx(0.3), approx(0.3))}


def test_kernels_and_backward_belong_to_the_callers_of_the_forward(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.line(50, 20, "Net.forward")
    run.line(60, 30, "helper")
    run.op("aten::mm", 60, 50, seq=3)
    run.kernel(100, 200, launched=70)
    run.line(120, 20, "Net.forward", again=True)
    run.line(130, 11, again=True)
    run.op("autograd::engine::evaluate_function: MmBackward0", 200, 60, AUTOGRAD, seq=3, fwd=1)
    run.op("aten::mm", 210, 40, AUTOGRAD)
    run.kernel(300, 400, launched=220, tid=AUTOGRAD)
    run.events.append(
        {"ph": "s", "id": 1, "pid": 4100, "tid": 4100, "ts": 1010.0, "cat": "fwdbwd", "name": "x"}
    )
    profile = run.profile()
    found = {one.function: one for one in profile.functions}
    helper = found["helper"]
    assert helper.step_ms == approx(sum(c.step_ms for c in profile.lines if c.function == "helper"))
    assert helper.step_ms >= 0.6  # both kernels
    assert found["Net.forward"].total_ms == approx(found["Net.forward"].step_ms + helper.total_ms)
    assert found["<module>"].total_ms == approx(profile.steps.step_ms)


def test_records_without_returns_say_nothing(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(100, 20, "Net.forward")
    assert run.profile().functions == ()


def calls(run: KinetoRun) -> dict[int, tuple[list[str], float, float, float]]:
    """Line -> (functions it calls, and with them its nodes, those never visited, and its backward pass)."""
    return {
        cost.line: (
            [name for _, name in cost.called],
            cost.total_nodes,
            cost.total_unused_nodes,
            cost.total_backward_ms,
        )
        for cost in run.profile().lines
    }


def test_lines_that_call_one_function_are_told_apart(tmp_path: Path) -> None:
    """A teacher (line 10) and its pupil (line 11) run the same line; one is visited by the backward pass."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.line(10, 20, "Net.forward")
    run.op("aten::mm", 20, 100, seq=7)
    run.line(140, 10, again=True)
    run.line(150, 11)
    run.line(160, 20, "Net.forward")
    run.op("aten::mm", 170, 100, seq=8)
    run.line(290, 11, again=True)
    run.line(300, 12)
    run.op("aten::sum", 310, 50, seq=9)
    run.op("autograd::engine::evaluate_function: MmBackward0", 500, 200, AUTOGRAD, seq=8, fwd=1)
    found = calls(run)
    assert found[10] == (["Net.forward"], 1.0, 1.0, 0.0)
    assert found[11] == (["Net.forward"], 1.0, 0.0, approx(0.2))
    assert found[20] == ([], 2.0, 1.0, approx(0.2))


def test_a_call_that_began_before_the_capture_is_its_lines(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 30, "helper")
    run.line(200, 20, "Net.forward", again=True)
    run.line(500, 10, again=True)
    found = calls(run)
    assert found[20][0] == ["helper"]
    assert found[10][0] == ["Net.forward"]


def test_what_checkpointing_computes_again_is_not_unused(tmp_path: Path) -> None:
    """The second forward's nodes hold the saved tensors; the backward pass visits those of the first."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.op("aten::mm", 20, 100, seq=7)
    run.line(300, 12)
    run.op("aten::sum", 310, 50, seq=8)  # the last number of its thread, which does not count
    run.op("autograd::engine::evaluate_function: SumBackward0", 490, 5, AUTOGRAD, seq=8, fwd=1)
    run.op("autograd::engine::evaluate_function: MmBackward0", 500, 300, AUTOGRAD, seq=7, fwd=1)
    run.mark("warpline.recompute", 510, 120, AUTOGRAD)
    run.op("aten::mm", 520, 100, AUTOGRAD, seq=1)
    run.op("aten::relu", 622, 3, AUTOGRAD, seq=2)
    run.op("aten::sum", 626, 3, AUTOGRAD, seq=3)
    assert {line: nodes for line, (_, *nodes, _) in calls(run).items()} == {10: [1.0, 0.0], 12: [0.0, 0.0]}


def test_casts_of_weights_that_autocast_keeps_are_not_unused(tmp_path: Path) -> None:
    """A cast has a graph under torch.no_grad() too: it may be read again where gradients are on."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)  # with torch.no_grad(), torch.autocast("cuda"): fake = generator(noise)
    run.op("aten::linear", 20, 100)
    run.op("aten::to", 25, 30, seq=5)
    run.op("aten::_to_copy", 26, 28, seq=5)
    run.line(300, 12)
    run.op("aten::mm", 310, 50, seq=6)
    run.op("aten::sum", 370, 50, seq=7)
    run.op("autograd::engine::evaluate_function: MmBackward0", 500, 300, AUTOGRAD, seq=6, fwd=1)
    found = calls(run)
    assert found[10] == ([], 0.0, 0.0, 0.0)
    assert found[12][1:3] == (1.0, 0.0)
