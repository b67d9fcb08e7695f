"""A script that leaks, watched to its end through the real capture."""

from __future__ import annotations

from pathlib import Path

import pytest

import warpline
from tests.capture.launching import Captured, request, write
from warpline import pipeline, runs
from warpline.trends.said import notes
from warpline.wire.trend import STEPS, Trend

pytestmark = pytest.mark.process

WINDOWS, KEPT = 25, 40_000
#: It trains until it was watched for long enough, however quick the machine is.
SCRIPT = f"""
import json, pathlib, time, torch
def watched():
    return any(len(json.loads(path.read_text())["windows"]) >= {WINDOWS}
               for path in pathlib.Path(__file__).parent.glob("*/trend.json"))
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
kept = []
step, end = 0, time.monotonic() + 120
while step % 50 or (time.monotonic() < end and not watched()):
    step += 1
    time.sleep(0.001)
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    kept.append(bytes(bytearray({KEPT})))
open("ended", "w").close()
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("watching")
    asked = request(write(folder, SCRIPT), every=10, whole_run=True, warmup=2)
    return Captured(asked, folder)


@pytest.fixture(scope="module")
def trend(captured: Captured) -> Trend:
    found = runs.trend(captured.run)
    assert found is not None, captured.output
    return found


def test_windows_come_every_so_many_steps(trend: Trend) -> None:
    begins = [window.step for window in trend.windows]
    assert begins == list(range(begins[0], begins[0] + 10 * len(begins), 10))
    assert len(begins) >= WINDOWS
    for window in trend.windows:
        assert len(window.steps_ns) == STEPS
        assert abs(sum(window.steps_ns) - STEPS * window.step_ns) <= STEPS
    ends = [window.began_ns + STEPS * window.step_ns for window in trend.windows]
    for before, end, after in zip(trend.windows, ends, trend.windows[1:], strict=False):
        assert after.between_ns is not None
        assert abs(after.between_ns * (10 - STEPS) - (after.began_ns - end)) < 1e5, before


def test_the_script_goes_on_to_its_end(captured: Captured) -> None:
    assert (captured.run.parent / "ended").exists()


def test_the_leak_is_found_with_its_rate(trend: Trend) -> None:
    grown = trend.windows[-1].memory_bytes - trend.windows[0].memory_bytes
    steps = trend.windows[-1].step - trend.windows[0].step
    assert grown == pytest.approx(steps * KEPT, rel=0.15)
    assert any(note.startswith("memory keeps growing") for note in notes(trend))


def test_the_windows_are_a_table(captured: Captured, trend: Trend) -> None:
    table = warpline.load(str(captured.run)).windows
    assert list(table["step"]) == [window.step for window in trend.windows]
    assert table["step_ms"].iloc[3] == trend.windows[3].step_ns / 1e6


def test_a_run_that_ended_too_early_says_so(captured: Captured, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes((captured.run / "manifest.json").read_bytes())
    assert pipeline.trend_notes(tmp_path) == (
        "--every: the script ended before a step was timed after the capture",
    )


def test_a_run_that_was_not_watched_has_none(tmp_path: Path) -> None:
    assert runs.trend(tmp_path) is None
    (tmp_path / "trend.json").write_text("{")
    assert runs.trend(tmp_path) is None
