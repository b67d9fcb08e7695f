"""A script's way through all the stages, and what is kept of it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ExampleRun
from warpline import pipeline
from warpline.attribution.attribute import LEAST_MS
from warpline.measure import store
from warpline.measure.candidate import Candidate
from warpline.measure.contest import Outcome
from warpline.model.problem import Problem
from warpline.model.report import Measured, Report
from warpline.wire.run import Request

pytestmark = pytest.mark.usefixtures("whole_torch")

#: Times each step itself, by hand, as a stopwatch around the loop would. It computes little beside the delay:
#: how long that takes differs from window to window on a busy machine.
STOPWATCH = """
import json, pathlib, time, torch
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
stamps, slept = [], []
try:
    while True:
        began = time.time_ns()
        time.sleep(0.02)  # planted
        slept.append((began, time.time_ns() - began))
        x = torch.randn(64, 64)
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
        stamps.append(time.time_ns())
finally:
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps([stamps, slept]))
"""


def test_what_is_kept_is_used_again(example_run: ExampleRun, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(example_run.run, run)
    first = pipeline.report_of(run)
    assert first == example_run.report
    assert replace(pipeline.profile_of(run), sources={}) == replace(
        pipeline.profile_of(example_run.run), sources={}
    )
    assert pipeline.profile_of(run).sources
    assert json.loads((run / "profile.json").read_bytes())["sources"] == {}
    (run / "report.json").write_text("{", encoding="utf-8")
    (run / "profile.json").unlink()
    assert pipeline.report_of(run) == first  # made anew from the same run: the same report


def test_how_far_predictions_were_off_is_said_beside_the_next(
    recorded: Callable[[str], Path], tmp_path: Path
) -> None:
    before, run = tmp_path / "before", tmp_path / "now"
    for folder in (before, run):
        shutil.copytree(recorded("transpose-kernel"), folder)
    (found, *_) = pipeline.report_of(run).findings
    assert found.predicted is not None and found.predicted.basis == "simulated"
    assert not any("predictions" in note for note in pipeline.report_of(run).notes)
    seen = Measured(found.predicted.speedup / 1.25, 1.0, 99.0, None, None)
    outcome = Outcome(Candidate((found.id,), "tiles", {}), 2.0, 1.0, seen, True, "faster", 5)
    store.add(before, store.entry(outcome, found, {}.get))
    assert (
        "earlier predictions on this machine were off by 25 % (median of 1)" in pipeline.report_of(run).notes
    )


def test_a_folder_that_is_no_run_has_no_report(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Problem):
        pipeline.report_of(tmp_path)


def test_the_account_of_a_real_run_is_closed(example_run: ExampleRun) -> None:
    report = example_run.report
    total = sum(line.step_ms for line in report.lines) + report.unattributed.step_ms
    # Lines of less than LEAST_MS have no row.
    left_out = LEAST_MS * len(example_run.script.read_text(encoding="utf-8").splitlines())
    assert total == pytest.approx(report.steps.step_ms, rel=1e-9, abs=left_out)
    assert report.attributed.device_percent > 99
    assert report.attributed.step_percent > 95
    for line in report.lines:
        parts = line.forward_ms + line.backward_ms + line.recompute_ms
        assert parts == pytest.approx(line.device_ms, abs=1e-9)
        assert line.idle_ms <= line.step_ms + 1e-9
    assert 0 < report.steps.device_busy_percent <= 100


def test_the_step_and_a_planted_delay_agree_with_a_stopwatch(tmp_path: Path) -> None:
    """The same steps, timed by the script's own hand: noise of the machine hits both alike."""
    script = tmp_path / "loop.py"
    script.write_text(STOPWATCH, encoding="utf-8")
    seen: list[tuple[Path, Report]] = []
    _, report = pipeline.profile(
        Request(
            target=str(script),
            python=sys.executable,
            cwd=str(tmp_path),
            steps=3,
            environment={"OMP_NUM_THREADS": "1"},
        ),
        on_report=lambda run, made: seen.append((run, made)),
    )
    assert [made for _, made in seen] == [report]
    stamps, slept = json.loads(script.with_suffix(".json").read_text(encoding="utf-8"))
    manifest = pipeline.profile_of(seen[0][0]).manifest
    # The end of the last timed step is left out: the runner prepares the next window between its
    # stamp and the script's.
    timed, by_hand = np.array(manifest.timed_ns)[:-1], np.diff(np.array(stamps))
    # Which of the script's steps were the timed ones is told by their durations: no two stretches of
    # a noisy machine are alike, and on a quiet one it does not matter.
    windows = np.lib.stride_tricks.sliding_window_view(by_hand, len(timed))
    same = windows[np.abs(windows - timed).sum(axis=1).argmin()]
    assert same.mean() == pytest.approx(timed.mean(), rel=0.05)
    assert report.steps.step_ms == pytest.approx(np.mean(manifest.timed_ns) / 1e6)
    # The planted delay has the share of the step that it had in the captured steps, or more where the
    # profiler's own cost, which fell elsewhere, is taken off.
    planted = STOPWATCH.splitlines().index("        time.sleep(0.02)  # planted") + 1
    (line,) = (line for line in report.lines if line.line == planted)
    begin, end = manifest.captured[0][0], manifest.captured[-1][1]
    share = sum(length for began, length in slept if begin <= began < end) / (end - begin)
    most = min(1.0, share * max(1.0, report.steps.slowdown))
    # Lines were sampled in steps after these, that nothing recorded: on a quiet machine all shares are alike.
    first = int(np.abs(windows - timed).sum(axis=1).argmin())
    stretches = [(stamps[first], stamps[first + len(timed)]), (end, stamps[-1])]
    plain = [
        sum(length for began, length in slept if start <= began < stop) / (stop - start)
        for start, stop in stretches
    ]
    # A stretch also holds the steps in which a window began or ended; its middle step does not.
    steps = list(zip(stamps, stamps[1:], [length for _, length in slept[1:]], strict=False))
    plain += [
        float(np.median([length / (stop - start) for start, stop, length in steps if low <= start < high]))
        for low, high in stretches
    ]
    said = line.idle_ms / report.steps.step_ms
    assert 0.95 * min(share, *plain) <= said <= 1.05 * max(most, *plain)
    assert line.step_ms == pytest.approx(line.idle_ms)
