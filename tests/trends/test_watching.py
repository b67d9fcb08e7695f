"""A script that leaks, watched to its end through the real capture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warpline
from tests.capture.launching import Captured, request, write
from warpline import pipeline, runs
from warpline.model import units
from warpline.trends import by_line
from warpline.trends.said import notes
from warpline.wire.trend import STEPS, Trend

pytestmark = pytest.mark.process

WINDOWS, KEPT, SLOW_MS = 30, 40_000, 200
#: It trains until it was watched for long enough, however quick the machine is; a stretch of it is slow.
SCRIPT = f"""
import json, pathlib, time, torch
def watched():
    return max((len(json.loads(path.read_text())["windows"])
                for path in pathlib.Path(__file__).parent.glob("*/trend.json")), default=0)
def look_back(step):
    time.sleep(0.001 + 5e-5 * step)                 # PLANTED: more in each step
def evaluate():
    time.sleep({SLOW_MS} / 1000)                    # PLANTED: for a while
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
kept = []
step, slow, seen, end = 0, 1 << 30, 0, time.monotonic() + 120
while step % 50 or (time.monotonic() < end and seen < {WINDOWS}):
    step += 1
    if step % 50 == 0:
        seen = watched()
        slow = min(slow, step) if seen > 9 else slow
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    kept.append(torch.zeros({KEPT} // 4))           # PLANTED: a leak
    look_back(step)
    if slow <= step < slow + 20:
        evaluate()
open("ended", "w").close()
"""


def planted(code: str) -> int:
    return 1 + next(at for at, line in enumerate(SCRIPT.splitlines()) if code in line)


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
        between = 10 - STEPS - bool(before.lines_took_ns)
        assert abs(after.between_ns * between - (after.began_ns - end - before.lines_took_ns)) < 1e5, before


def test_the_script_goes_on_to_its_end(captured: Captured) -> None:
    assert (captured.run.parent / "ended").exists()


def test_the_leak_is_found_with_its_rate(trend: Trend) -> None:
    middle = trend.windows[len(trend.windows) // 2]  # at first it fills what the capture has freed
    grown = trend.windows[-1].memory_bytes - middle.memory_bytes
    steps = trend.windows[-1].step - middle.step
    assert grown == pytest.approx(steps * KEPT, rel=0.15)
    assert any(note.startswith("memory keeps growing") for note in notes(trend))


def test_a_step_is_divided_among_its_lines(trend: Trend) -> None:
    found = by_line.times(trend)
    assert len(found) >= by_line.ENOUGH
    for window, lines in found:
        assert sum(lines.values()) <= window.lines_took_ns
        (asleep,) = [ns for (_, line), ns in lines.items() if line == planted("more in each step")]
        assert asleep >= 0.001e9


def said(captured: Captured, beginning: str) -> str:
    report = pipeline.report_of(captured.run)
    return next(note for note in report.notes if note.startswith(beginning))


def test_the_planted_lines_are_named(captured: Captured) -> None:
    drift = said(captured, "steps get slower")
    assert f"most of it at train.py:{planted('more in each step')}, which takes" in drift
    leak = said(captured, "memory keeps growing")
    assert f": in the captured steps train.py:{planted('a leak')} kept {units.size(KEPT)} a step" in leak
    slow = said(captured, "steps: ")
    found = re.search(
        rf": most of it at train.py:{planted('for a while')}, which took ([\d.]+) ms more", slow
    )
    assert found and float(found[1]) >= SLOW_MS, slow


def test_the_lines_are_a_table(captured: Captured, trend: Trend) -> None:
    table = warpline.load(str(captured.run)).window_lines
    asleep = table[table["line"] == planted("more in each step")]
    assert list(asleep["step"]) == [window.step for window, _ in by_line.times(trend)]
    assert asleep["host_ms"].min() >= 1.0


def test_the_windows_are_a_table(captured: Captured, trend: Trend) -> None:
    table = warpline.load(str(captured.run)).windows
    assert list(table["step"]) == [window.step for window in trend.windows]
    assert table["step_ms"].iloc[3] == trend.windows[3].step_ns / 1e6


def test_a_run_that_ended_too_early_says_so(captured: Captured, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes((captured.run / "manifest.json").read_bytes())
    assert pipeline.trend_notes(tmp_path) == ("--every: no step has been timed after the capture",)


def test_a_run_that_was_not_watched_has_none(tmp_path: Path) -> None:
    assert runs.trend(tmp_path) is None
    (tmp_path / "trend.json").write_text("{")
    assert runs.trend(tmp_path) is None
