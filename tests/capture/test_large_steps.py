"""A step with very many operators is recorded once to see its size, and then again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tests.capture.launching import Captured, request, write
from warpline import pipeline, trace
from warpline.capture.runner.windows import lengths
from warpline.capture.runner.windows.capturing import Capture
from warpline.trace import ahead as module
from warpline.trace.ahead import Ahead
from warpline.trace.columns import OP
from warpline.wire.control import Windows
from warpline.wire.dataflow import Dataflow

TURNS = 2_600
SCRIPT = f"""\
import torch
from torch import nn
torch.set_num_threads(1)
net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    x = torch.ones(8)
    with torch.no_grad():
        for _ in range({TURNS}):
            x = x * 0.5 + 1.0
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_every_operator_of_every_step_is_in_the_second_recording(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT)), tmp_path)
    assert captured.facts.dataflow.calls > 2 * TURNS
    starts = [one for one in captured.progress if one.message == "starting the profiler"]
    assert len(starts) > 1
    manifest = captured.manifest
    assert len(manifest.captured) == 3
    assert not [note for note in manifest.notes if "captured" in note]
    found = trace.read(captured.run)
    for begin, end in manifest.captured:
        within = (found.host.kind == OP) & (found.host.start_ns >= begin) & (found.host.start_ns < end)
        names = [found.names[name] for name in found.host.name[within].tolist()]
        assert names.count("aten::mul") == TURNS
    assert captured.lines()["train.py", 10] >= 3 * TURNS


SLOW = """\
import time, torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    time.sleep(2.0)
    net(torch.ones(8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_steps_that_are_long_for_the_time_limit_are_measured_all_the_same(tmp_path: Path) -> None:
    """4 steps of 2 s before the timing, 12 for the usual windows, and the import of torch in 24 s."""
    captured = Captured(request(write(tmp_path, SLOW), steps=5, timeout_s=24.0), tmp_path)
    manifest = captured.manifest
    assert 1 <= len(manifest.captured) < 5
    assert all(step > 2e9 for step in manifest.timed_ns)
    assert [note for note in manifest.notes if "the time limit is short for steps of 2.0 s" in note]


STALLING = """\
import itertools, time, torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in itertools.count():
    time.sleep(0.004 if (step + 1) % 12 else 2.5)
    net(torch.ones(8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_steps_that_stall_at_times_end_the_timing_window(tmp_path: Path) -> None:
    """A loader may start its workers again after so many steps: the usual window of half a second of quick
    steps would take 25 s."""
    captured = Captured(request(write(tmp_path, STALLING), steps=2, timeout_s=24.0), tmp_path)
    timed = captured.manifest.timed_ns
    assert sum(timed) < 16e9
    assert max(timed) > 1e9
    assert len(captured.manifest.captured) == 2


def test_a_long_capture_pauses_and_its_steps_follow_each_other(tmp_path: Path) -> None:
    """After the first step, since one may be large, and then by the size of its trace."""
    captured = Captured(request(write(tmp_path, SCRIPT), steps=7), tmp_path)
    starts = [one.done for one in captured.progress if one.message == "starting the profiler"]
    assert starts[-1] > 0, "it paused"
    steps = captured.manifest.captured
    assert len(steps) == 7
    assert all(end == begin for (_, end), (begin, _) in pairwise(steps))
    found = trace.read(captured.run)
    for begin, end in steps:
        within = (found.host.kind == OP) & (found.host.start_ns >= begin) & (found.host.start_ns < end)
        names = [found.names[name] for name in found.host.name[within].tolist()]
        assert names.count("aten::mul") == TURNS
        assert names.count("aten::add") >= TURNS
    mul = found.host.name == list(found.names).index("aten::mul")
    assert (found.host.depth[mul] == 0).all(), "no operator lies in one of another recording"
    assert captured.lines()["train.py", 10] == pytest.approx(7 * TURNS, abs=7)
    assert list(captured.run.glob("*.more")) == []
    written = [one for _, one in captured.pauses]
    assert written[0] == 0
    assert written == sorted(set(written)), "each pause tells what the one before has added"
    text = (captured.run / "trace.json").read_bytes()
    assert {text[one : one + 1] for one in written[1:]} == {b","}, "the end of an event, and more behind it"


@pytest.mark.process
def test_what_the_pauses_wrote_is_read_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    tables = Ahead.tables

    def told(ahead: Ahead, path: Path) -> object:
        known = tables(ahead, path)
        found.append(known is not None)
        return known

    monkeypatch.setattr(Ahead, "tables", told)
    monkeypatch.setattr(module, "cores", lambda: 2)
    asked = request(write(tmp_path, SCRIPT), steps=7, probe_s=0)
    run, report = pipeline.profile(asked, folder=tmp_path / "runs")
    assert found == [True]
    assert report.steps.captured == 7
    again = pipeline.judging.judge(run, pipeline.judging.read(run, None)).report
    assert again.lines == report.lines


def test_a_script_that_ends_after_a_pause_keeps_what_was_written(tmp_path: Path) -> None:
    """It ends once the first trace is there, in the first step that is captured after it."""
    written = f"any(pathlib.Path({str(tmp_path)!r}).rglob('trace.json'))"
    script = SCRIPT.replace("import torch", "import pathlib, torch", 1)
    script = script.replace("while True:", f"more = 3\nwhile more:\n    more -= {written}")
    captured = Captured(request(write(tmp_path, script), steps=60), tmp_path)
    assert len(captured.manifest.captured) in (1, 2)
    assert any("of 60 captured steps" in note for note in captured.manifest.notes)
    found = trace.read(captured.run)
    begin, end = captured.manifest.captured[0][0], captured.manifest.captured[-1][1]
    within = (found.host.start_ns >= begin) & (found.host.start_ns < end)
    names = [found.names[name] for name in found.host.name[within].tolist()]
    assert names.count("aten::mul") == len(captured.manifest.captured) * TURNS


def test_a_full_disk_behind_a_pause_keeps_what_was_written(tmp_path: Path) -> None:
    """No file may be larger than the first trace from then on, so that nothing can be put behind it."""
    limit = (
        f"    for found in pathlib.Path({str(tmp_path)!r}).rglob('trace.json'):\n"
        "        most = max(200_000, found.stat().st_size + 1000)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))\n"
    )
    script = SCRIPT.replace("import torch", "import pathlib, resource, torch", 1)
    script = script.replace("while True:\n", "while True:\n" + limit)
    captured = Captured(request(write(tmp_path, script), steps=60), tmp_path)
    assert 1 <= len(captured.manifest.captured) < 60
    assert any(
        "of 60 captured steps could be written: File too large" in note for note in captured.manifest.notes
    )
    found = trace.read(captured.run)
    begin, end = captured.manifest.captured[0][0], captured.manifest.captured[-1][1]
    within = (found.host.start_ns >= begin) & (found.host.start_ns < end)
    names = [found.names[name] for name in found.host.name[within].tolist()]
    assert names.count("aten::mul") == len(captured.manifest.captured) * TURNS
    assert list(captured.run.glob("*.more")) == []


def weighed(size: int, *, few_steps: bool) -> tuple[Capture, list[str]]:
    """A capture of five steps that has begun, and its notes. A step has a trace of ``size`` bytes."""
    session = MagicMock(windows=Windows(look=False), timed=(1,), notes=[])
    session.control.local_world = 1
    session.agreement.of = lambda what, mine, *_: [mine]
    session.recorder.few_steps = few_steps
    session.recorder.needs_all_threads.return_value = False
    session.recorder.locations.forget_all_but_last.return_value = 10
    session.recorder.save.return_value = size
    session.observers.facts = {"dataflow": Dataflow(calls=lengths.WEIGHED_CALLS)}
    session.classes.is_other.return_value = False
    capture = Capture(session)
    capture.begin()
    for _ in range(3):  # the rehearsal; between two recordings; the first that counts
        capture.tick()
    return capture, session.notes


def test_a_step_is_weighed_once_if_the_capture_is_disturbed() -> None:
    """The script's own profiler ended in a captured step: steps count anew from the next one on."""
    capture, notes = weighed(lengths.QUICK_BYTES // 2, few_steps=False)
    assert capture.wanted == 2
    capture.excuse(1, long=True)
    capture.tick()
    assert capture.stamps is not None
    assert capture.wanted == 2
    assert len(notes) == 1, notes


def test_where_steps_are_few_the_weighed_one_is_one_of_them() -> None:
    assert weighed(1, few_steps=False)[0].wanted == 5
    capture, notes = weighed(1, few_steps=True)
    assert capture.wanted == 4
    assert not notes
