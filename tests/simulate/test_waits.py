"""One stream waits for another: seen in the trace, and kept when kernels take another time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kineto import KinetoRun
from warpline.simulate import Places
from warpline.simulate.replay import Clock, replay
from warpline.simulate.timeline import Timeline, timeline_of

CLOCK = Clock(latency_ns=3_000, gap_ns=1_000)


def recorded(folder: Path, *, waits: bool = True) -> Timeline:
    """A (100 us), in another stream B (300 us) that waits for it, then C (50 us) that waits for B."""
    run = KinetoRun(folder, 470)
    run.line(0, 10)
    for name, start, length, launched, stream in (
        ("A", 10, 100, 1, 7),
        ("B", 114, 300, 20, 20),
        ("C", 418, 50, 40, 7),
    ):
        if waits and name != "A":
            run.call("cudaStreamWaitEvent", launched - 2, 1)
        run.kernel(start, length, launched=launched, name=name, stream=stream)
    run.call("cudaDeviceSynchronize", 60, 408)
    trace = run.trace()
    line = np.zeros(len(trace.host), np.int64)
    return timeline_of(trace, Places(line, np.zeros(len(trace.locations.locations), np.int64), (("", 0),)))


def test_each_kernel_waits_for_the_one_of_the_other_stream_that_ended_last(tmp_path: Path) -> None:
    line = recorded(tmp_path)
    by_name = dict(
        zip("ABC", zip(line.stream.tolist(), line.kernel_start.tolist(), strict=True), strict=True)
    )
    assert {at: hold.after for at, hold in line.holds.items() if hold.after} == {
        by_name["B"]: by_name["A"],
        by_name["C"]: by_name["B"],
    }
    assert all(hold.delay_ns == pytest.approx(4_000) for hold in line.holds.values() if hold.after)


def test_the_window_takes_as_long_as_it_was_recorded(tmp_path: Path) -> None:
    assert replay(recorded(tmp_path), CLOCK) == pytest.approx(458_000, rel=0.05)


def test_what_waits_begins_earlier_when_what_it_waits_for_is_done_earlier(tmp_path: Path) -> None:
    line = recorded(tmp_path)
    quicker = replace(line, kernel_ns=line.kernel_ns * np.array([1.0, 0.5, 1.0]))
    assert replay(line, CLOCK) - replay(quicker, CLOCK) == pytest.approx(150_000, rel=0.01)


def test_streams_that_never_wait_are_not_held_up(tmp_path: Path) -> None:
    assert recorded(tmp_path, waits=False).holds == {}
