"""A short script that profiles itself: it is measured, and its own traces are what they are without us."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import own_profiler
from tests.capture.launching import Captured, request, write


def test_the_tutorials_script(tmp_path: Path) -> None:
    text = own_profiler.scripts()["cycles of 5, 5 steps"]
    alone = tmp_path / "alone"
    alone.mkdir()
    status, _ = own_profiler.run(write(alone, text))
    assert status == 0
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    mine, theirs = own_profiler.traces(tmp_path / "log"), own_profiler.traces(alone)
    assert mine == theirs
    assert len(mine) == 1
    assert mine[0]["steps"] == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
    assert "Traceback" not in captured.output
    assert any("switched off" in note for note in captured.manifest.notes)
    assert len(captured.manifest.captured) >= 1
    assert captured.lines()["train.py", 12] >= 1
    assert captured.lines()["train.py", 15] >= 1


def test_what_it_exports_is_not_written_anew(tmp_path: Path) -> None:
    """The second run goes on after our windows: what it exports then would be empty."""
    text = own_profiler.scripts()["around all, 20 steps"]
    captured = Captured(request(write(tmp_path, text), whole_run=True), tmp_path)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("name") == "aten::addmm" for event in events) == 40
    assert "Traceback" not in captured.output
    assert captured.manifest.exit_status is None


RECIPE = """\
import torch
from torch.profiler import profile, ProfilerActivity, record_function
model = torch.nn.Linear(64, 8)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        model(torch.randn(4, 64))
print("first", prof.key_averages()[0].key is not None, flush=True)
"""


def test_a_script_without_steps_that_reads_its_events(tmp_path: Path) -> None:
    """They are not there when it is measured as a whole, and that is no failure of the script's."""
    captured = Captured(request(write(tmp_path, RECIPE)), tmp_path)
    assert captured.output.count("first True\n") == 1
    assert "Traceback" not in captured.output
    assert captured.manifest.step_source == "whole"
    assert captured.lines()["train.py", 6] >= 1
