"""What anomaly detection adds to lines, and the step without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kineto import AUTOGRAD, KinetoRun, at_line, closed, ns
from warpline import judging
from warpline.attribution import locate
from warpline.attribution.anomaly import within
from warpline.model.change import NoAnomalyDetection
from warpline.simulate import Simulation
from warpline.trace import Trace
from warpline.wire.facts import Flags
from warpline.wire.run import DeviceFacts

EVALUATE = "autograd::engine::evaluate_function: "


def spans(*pairs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([low for low, _ in pairs], np.int64), np.array([high for _, high in pairs], np.int64)


def test_how_much_of_a_stretch_lies_in_spans() -> None:
    start, end = spans((0, 10), (10, 20), (5, 35), (22, 24), (40, 50))
    assert within(start, end, spans((8, 12), (20, 30))).tolist() == [2, 2, 14, 2, 0]
    assert within(start, end, spans()).tolist() == [0, 0, 0, 0, 0]


def on_cpu(folder: Path, timed_us: float = 1000.0) -> KinetoRun:
    """A step of 1,000 us: a product with a traceback of 150 us, and its backward with a check of 40 us."""
    run = KinetoRun(folder, 1000.0, timed_us=timed_us, device=DeviceFacts())
    run.line(0, 5)
    run.op("aten::mm", 0, 500, seq=1)
    run.line(600, 6)
    run.op(EVALUATE + "MmBackward0", 610, 300, seq=1, fwd=1)
    run.op("MmBackward0", 610, 200, seq=1, fwd=1)
    run.op("aten::mm", 620, 100)
    run.op("aten::isnan", 730, 20)  # the function's own, as where it masks its gradients
    run.op("aten::isnan", 820, 20)
    run.op("aten::ne", 825, 10)
    run.op("aten::_is_any_true", 845, 10)
    run.op("aten::item", 860, 10)
    run.line(950, 7)
    run.op("aten::isnan", 955, 20)  # the script's
    run.facts |= {"flags": {"anomaly_mode": True}, "traceback_ns": [(ns(100), ns(250)), (ns(2000), ns(2100))]}
    return run


def test_on_a_cpu(tmp_path: Path) -> None:
    profile = on_cpu(tmp_path).profile()
    assert closed(profile) == pytest.approx(1.0)
    assert at_line(profile, 5).traceback_ms == pytest.approx(0.15, rel=0.02)
    assert at_line(profile, 5).check_ms == pytest.approx(0.04, rel=0.1), "its backward pass is at its line"
    assert [at_line(profile, line).check_ms for line in (6, 7)] == [0, 0]


def test_recording_slows_everything_but_tracebacks(tmp_path: Path) -> None:
    run = on_cpu(tmp_path, timed_us=600.0)
    assert at_line(run.profile(), 5).traceback_ms == pytest.approx(0.15, rel=0.02)
    assert predicted(run.trace()) == pytest.approx(0.6 - 0.15 - 0.04 * 0.6, rel=0.02)


def test_other_processes_took_time_of_the_recorded_steps(tmp_path: Path) -> None:
    run = on_cpu(tmp_path, timed_us=800.0)
    run.facts |= {"queued_ns": 400_000, "cores": {"window_ns": 1_000_000, "queued_ns": 200_000}}
    assert at_line(run.profile(), 5).traceback_ms == pytest.approx(0.15 * 0.6 / 0.8, rel=0.02)


def predicted(seen: Trace, *lines: int, checked: float = 0.0) -> float:
    from warpline.attribution import attribute

    located = locate(seen)
    profile = attribute(seen, located)
    file = profile.manifest.script
    found = Simulation(seen, judging.places(located), profile).predict(
        NoAnomalyDetection(tuple((file, line) for line in lines), checked)
    )
    assert found is not None
    assert found.basis == ("simulated" if seen.facts.traceback_ns is not None else "estimate")
    return found.step_ms


def test_the_step_without_it_on_a_cpu(tmp_path: Path) -> None:
    seen = on_cpu(tmp_path).trace()
    assert predicted(seen) == pytest.approx(0.81, rel=0.02)
    assert predicted(seen, 7) == pytest.approx(1.0, rel=0.001)
    older = replace(seen, facts=replace(seen.facts, traceback_ns=None))
    assert predicted(older) == pytest.approx(0.96, rel=0.02)


def test_where_it_was_off_nothing_is_a_check(tmp_path: Path) -> None:
    run = on_cpu(tmp_path)
    run.facts |= {"flags": {"anomaly_mode": None}, "traceback_ns": []}
    seen = run.trace()
    assert seen.facts.flags == Flags()
    assert at_line(run.profile(), 5).check_ms == 0
    assert predicted(seen) == pytest.approx(1.0, rel=0.001)


def on_gpu(folder: Path) -> KinetoRun:
    """Two products of 400 us on the device. After each one's backward the host reads a check's result."""
    run = KinetoRun(folder, 2000.0, timed_us=2000.0)
    run.line(0, 5)
    for at in range(2):
        run.op("aten::mm", 100 * at, 80, seq=at + 1)
        run.kernel(100 * at + 70, 60, 100 * at + 60)
    run.line(210, 6)
    for at in range(2):
        begun = 220 + 800 * at
        run.op(EVALUATE + "MmBackward0", begun, 780, AUTOGRAD, seq=2 - at, fwd=1)
        run.op("MmBackward0", begun, 50, AUTOGRAD, seq=2 - at, fwd=1)
        run.op("aten::mm", begun + 5, 40, AUTOGRAD)
        run.kernel(begun + 50, 600, begun + 30, tid=AUTOGRAD)
        run.op("aten::isnan", begun + 60, 20, AUTOGRAD)
        run.kernel(begun + 660, 5, begun + 70, tid=AUTOGRAD, name="ne")
        run.op("aten::item", begun + 90, 680, AUTOGRAD)
        run.call("cudaStreamSynchronize", begun + 100, 660, AUTOGRAD)
    run.facts |= {"flags": {"anomaly_mode": True}, "traceback_ns": []}
    return run


def test_on_a_device_the_host_no_longer_waits(tmp_path: Path) -> None:
    """Each gradient takes 600 us on the device, and the host is ahead of it then."""
    run = on_gpu(tmp_path)
    profile = run.profile()
    assert at_line(profile, 5).check_ms == pytest.approx(1.4, rel=0.2)
    seen = run.trace()
    step_ms = predicted(seen)
    assert 1.2 < step_ms < 1.75
    assert step_ms < predicted(seen, checked=0.5) < predicted(seen, checked=1.0) < step_ms + 0.15
    kept = Simulation(seen, judging.places(locate(seen)), profile).replayed_ms
    assert kept == pytest.approx(2.0, rel=0.05)
