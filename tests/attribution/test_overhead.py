"""What line records cost is taken off where they fell, and no more than that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, KinetoRun, at_line, closed
from warpline.attribution import attribute
from warpline.attribution.overhead import overhead
from warpline.wire.run import DeviceFacts

RECORDS = 1000
RECORD_US, OWN_US = 0.25, 0.05


def hot_python(folder: Path, slowdown_us: float, measured_ns: float | None) -> KinetoRun:
    """A line of pure Python, quicker than its own records, beside one long operator."""
    python_us = RECORDS * (RECORD_US + OWN_US)
    window_us = 700 + python_us
    run = KinetoRun(
        folder,
        window_us,
        timed_us=window_us - slowdown_us,
        device=DeviceFacts("cpu", "a CPU", 1),
        facts={"line_record_ns": measured_ns},
    )
    run.line(0, 10)
    run.op("aten::mm", 0, 700)
    for at in range(RECORDS):
        run.line(700 + at * (RECORD_US + OWN_US), 20)
    return run


@pytest.mark.parametrize("noise_us", [-250, -100, 0, 300])
def test_hot_python_keeps_what_it_took_whatever_the_windows_say(tmp_path: Path, noise_us: float) -> None:
    """Truth: 50 us of 750. The windows differ by the records' 250 us and by noise."""
    run = hot_python(tmp_path, RECORDS * RECORD_US + noise_us, measured_ns=RECORD_US * 1000)
    profile = run.profile()
    share = at_line(profile, 20).step_ms / profile.steps.step_ms
    assert share == pytest.approx(50 / 750, rel=0.05)
    assert closed(profile) == pytest.approx(profile.steps.step_ms)


def test_a_record_cost_no_more_than_the_gap_that_it_fell_in(tmp_path: Path) -> None:
    """Measured while the machine was twice as slow: then the line keeps the least that is left to one."""
    run = hot_python(tmp_path, RECORDS * RECORD_US, measured_ns=2 * RECORD_US * 1000)
    profile = run.profile()
    assert at_line(profile, 20).step_ms / profile.steps.step_ms == pytest.approx(30 / 730, rel=0.05)


def test_without_the_measurement_the_slowdown_bounds_it(tmp_path: Path) -> None:
    run = hot_python(tmp_path, 0, measured_ns=None)
    profile = run.profile()
    assert at_line(profile, 20).step_ms == pytest.approx(0.3, rel=0.05), "nothing was slowed"


def test_operators_of_the_backward_pass_share_what_the_profiler_cost(tmp_path: Path) -> None:
    """The main thread waits for autograd's: what its operators' records cost, the step is longer for."""
    run = KinetoRun(tmp_path, 1000, timed_us=800)
    run.line(0, 10)
    for at in range(40):
        run.op("aten::mul", at * 12, 10)
    for at in range(40):
        run.op("MulBackward0", 500 + at * 12, 10, tid=AUTOGRAD, **{"Fwd thread id": 1, "Sequence number": at})
    trace = run.trace()
    assert overhead(trace, 800_000, trace.window_ns).per_op_ns == pytest.approx(200_000 / 80, rel=0.01)


def test_lines_of_a_quick_loop_have_the_counts_of_the_step_before(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000, steps=2)
    for at in (0, 500):
        run.line(at + 100, 20)
        run.line(at + 300, 21)
    trace = run.trace()
    estimated = ((1, 300.0), (99, 5.0))  # the second is no location at all
    profile = attribute(replace(trace, locations=replace(trace.locations, estimated=estimated)))
    assert at_line(profile, 20).calls == 300
    assert at_line(profile, 21).calls == 1
    assert any("1 line in loops of plain Python" in note for note in profile.notes)
