"""A line's time by the libraries' lines below it: the entries add up to the line, whatever happens there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, LIBRARY, KinetoRun, approx, at_line, closed
from warpline.attribution import attribute
from warpline.attribution.named import clipping
from warpline.model.profile import LineCost
from warpline.wire.run import DeviceFacts

CPU = DeviceFacts("cpu", "a CPU", 1)
SELF = "encoder.layer.*.self"


def by_entry(cost: LineCost) -> dict[tuple[str | None, str, int], tuple[float, float, float]]:
    return {
        (entry.module, Path(entry.file).name, entry.line): (entry.step_ms, entry.device_ms, entry.calls)
        for entry in cost.inside
    }


def adds_up(cost: LineCost) -> None:
    assert sum(entry.step_ms for entry in cost.inside) == approx(cost.step_ms)
    for name in ("device_ms", "forward_ms", "backward_ms", "recompute_ms", "idle_ms"):
        assert sum(getattr(entry, name) for entry in cost.inside) == approx(getattr(cost, name)), name


def test_host_time_and_operators_go_to_the_last_line_of_a_library(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(100, 5)  # in a library, in no module
    run.library(200, 7, SELF)
    run.op("aten::mm", 250, 100)
    run.library(400, 5, again=True)
    run.op("aten::add", 400, 50)
    run.library(500, 0, again=True)  # back in the user's own line
    run.op("aten::sub", 500, 200)
    cost = at_line(run.profile(), 10)
    assert by_entry(cost) == {
        (None, "layers.py", 5): (approx(0.2), approx(0.05), approx(1)),
        (SELF, "layers.py", 7): (approx(0.2), approx(0.1), approx(1)),
        (None, "train.py", 10): (approx(0.6), approx(0.2), approx(0)),
    }
    adds_up(cost)


def test_a_user_s_line_that_a_library_calls_is_not_the_library_s(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(100, 5)
    run.line(300, 20, "helper")  # what the library calls
    run.op("aten::mm", 300, 300)
    run.line(600, 10, again=True)
    run.library(600, 5, again=True)
    profile = run.profile()
    assert at_line(profile, 20).inside == ()
    assert at_line(profile, 20).step_ms == approx(0.3)
    assert by_entry(at_line(profile, 10))[None, "layers.py", 5][0] == approx(0.6)
    adds_up(at_line(profile, 10))
    assert closed(profile) == approx(1.0)


def test_backward_goes_to_the_library_s_line_of_its_forward(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.library(0, 7, SELF)
    run.op("aten::mm", 10, 50, seq=3)
    run.kernel(40, 100, launched=20)
    run.library(100, 0, again=True)
    run.line(110, 11)
    run.library(110, 30)
    run.op("autograd::engine::evaluate_function: MmBackward0", 200, 60, AUTOGRAD, seq=3, fwd=1)
    run.op("aten::mm", 210, 40, AUTOGRAD)
    run.kernel(240, 200, launched=220, tid=AUTOGRAD)
    run.events.append(
        {"ph": "s", "id": 1, "pid": 4100, "tid": 4100, "ts": 1010.0, "cat": "fwdbwd", "name": "x"}
    )
    run.events.append(
        {
            "ph": "f",
            "id": 1,
            "pid": 4100,
            "tid": AUTOGRAD,
            "ts": 1200.0,
            "cat": "fwdbwd",
            "name": "x",
            "bp": "e",
        }
    )
    profile = run.profile()
    cost = at_line(profile, 10)
    assert by_entry(cost)[SELF, "layers.py", 7][1] == approx(0.3)
    adds_up(cost)
    adds_up(at_line(profile, 11))


def test_a_recomputed_forward_pass_goes_to_the_library_s_lines_that_run_again(tmp_path: Path) -> None:
    """Not all of it to the last line of the layer, whose operator the autograd node is of."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(0, 7, SELF)
    run.op("aten::mm", 10, 50)
    run.library(100, 8, SELF)
    run.op("aten::add", 110, 20, seq=3)
    run.library(200, 0, again=True)
    run.line(210, 11)
    run.op("autograd::engine::evaluate_function: AddBackward0", 300, 400, seq=3, fwd=1)
    run.mark("warpline.recompute", 310, 200)
    run.library(320, 7, SELF)
    run.op("aten::mm", 330, 50)
    run.library(400, 8, SELF)
    run.op("aten::add", 410, 20, seq=4)
    run.library(500, 0, again=True)
    run.op("aten::mul", 600, 30)
    cost = at_line(run.profile(), 10)
    found = {line: device for (_, _, line), (_, device, _) in by_entry(cost).items()}
    assert found[7] == approx(0.05 + 0.05)
    adds_up(cost)


def test_slowdown_is_shared_as_the_line_s_own(tmp_path: Path) -> None:
    """What the capture added is taken off, so the entries are of the timed step."""
    run = KinetoRun(tmp_path, 1000, timed_us=500, device=CPU)
    run.line(0, 10)
    for at in range(100):
        run.library(10 * at, 5, SELF)
        run.op("aten::add", 10 * at, 4)
    cost = at_line(run.profile(), 10)
    assert cost.step_ms == approx(0.5)
    adds_up(cost)
    assert {entry.file for entry in cost.inside} == {LIBRARY}


def test_a_run_without_libraries_says_nothing(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.op("aten::mm", 100, 100)
    trace = run.trace()
    assert at_line(attribute(trace), 10).inside == ()


def test_records_cost_their_line(tmp_path: Path) -> None:
    """A record of a library's line costs as much as one of the user's: of two lines with the same host time
    the one with more records is left with less."""
    run = KinetoRun(tmp_path, 2000, timed_us=1800, device=CPU)
    run.line(0, 10)
    for at in range(200):
        run.library(5 * at, 5)
    run.library(1000, 0, again=True)
    run.line(1000, 11)
    trace = run.trace()
    profile = attribute(replace(trace, facts=replace(trace.facts, line_record_ns=200.0)))
    assert at_line(profile, 10).step_ms < at_line(profile, 11).step_ms
    assert closed(profile) == pytest.approx(1.8)


def test_a_wait_stands_at_the_library_s_line(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.library(0, 7, SELF)
    run.kernel(40, 500, launched=20)
    run.library(100, 9)
    run.call("cudaStreamSynchronize", 110, 430)
    run.library(600, 5)
    cost = at_line(run.profile(), 10)
    waits = {entry.line: entry.sync_ms for entry in cost.inside}
    assert waits[9] == pytest.approx(cost.sync_ms) and cost.sync_ms > 0.3
    assert waits[7] == waits[5] == 0


def names(cost: LineCost) -> dict[int, str]:
    return {entry.line: entry.part for entry in cost.inside}


def test_the_optimizer_and_the_loader_are_named_by_torch_s_ranges(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(0, 5)
    run.mark("Optimizer.step#AdamW.step", 100, 300)
    run.op("aten::_foreach_mul_", 110, 280)
    run.library(500, 7)
    run.mark("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 510, 200)
    run.library(800, 9, SELF)
    run.op("aten::mm", 810, 100)
    cost = at_line(run.profile(), 10)
    assert names(cost) == {5: "optimizer/AdamW.step", 7: "loader/DataLoader", 9: ""}
    adds_up(cost)


def test_a_line_that_runs_within_a_range_is_not_around_it(tmp_path: Path) -> None:
    """Lightning's closure runs forward and backward within the optimizer's step."""
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(0, 5)  # optimizer.step(closure)
    run.mark("Optimizer.step#Adam.step", 100, 800)
    run.library(200, 7)  # in the closure
    run.op("aten::mm", 200, 300)
    run.library(500, 5, again=True)
    run.op("aten::_foreach_mul_", 500, 350)
    assert names(at_line(run.profile(), 10)) == {5: "optimizer/Adam.step", 7: ""}


def test_copies_are_named_by_their_direction(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.library(0, 5)
    run.kernel(30, 500, launched=20, name="Memcpy HtoD (Pageable -> Device)", cat="gpu_memcpy")
    run.library(600, 7)
    run.kernel(630, 300, launched=620, name="Memcpy DtoH (Device -> Pageable)", cat="gpu_memcpy")
    assert names(at_line(run.profile(), 10)) == {5: "copy/to the device", 7: "copy/to the host"}


def test_clipping_is_named_by_the_library_s_text() -> None:
    assert clipping("torch.nn.utils.clip_grad_norm_(parameters, max_norm)") == "gradients/clip_grad_norm_"
    assert clipping("self.clip_grad_by_norm(optimizer, clip_val)") == "gradients/clip_grad_by_norm"
    # Of a function with many lines only the calls are recorded.
    function = "def _clip_grad_norm_dtensor_aware(self, parameters, max_norm):"
    assert clipping(function) == "gradients/clip_grad_norm_"
    assert clipping("norm = total.clip(0)") == ""


@pytest.mark.parametrize("defined", [True, False])
def test_a_note_says_that_lines_of_libraries_were_left_out(tmp_path: Path, defined: bool) -> None:
    run = KinetoRun(tmp_path, 1000, device=CPU)
    run.line(0, 10)
    run.library(100, 5)
    run.op("aten::mm", 250, 100)
    run.line(600, 20)
    trace = run.trace()

    def said(at_def: tuple[int, ...], left_out: tuple[int, ...]) -> list[str]:
        table = replace(trace.libraries, at_def=at_def, left_out=left_out)
        notes = attribute(replace(trace, libraries=table)).notes
        return [note for note in notes if "functions of libraries" in note]

    assert said((), ()) == []
    (note,) = said((1,) if defined else (), () if defined else (0,))
    assert (
        "0.50 ms a step (50 %), in calls unlike those recorded in full, is shown at the `def`" in note
    ) == defined
    assert ("the time of one function is at the lines that call it" in note) != defined
    assert note.endswith("; --include FOLDER records all lines of the files below it, like your own")
    assert said((2,), ()) == []  # no time there
