"""Scripts that profile or trace themselves go on working."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from tests.conftest import shortened

START = """\
import sys
import torch
from torch import nn
from torch.profiler import profile, schedule
net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
def step():
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""
#: The script's profiler is paused after one second instead of five.
SOON = shortened(windows__ownprofiler__PATIENCE_S=1)


def test_one_cycle_of_the_scripts_profiler_is_left_alone(tmp_path: Path) -> None:
    text = START + (
        "def told(p):\n    print('own', sum(e.name == 'aten::addmm' for e in p.events()), flush=True)\n"
        "with profile(schedule=schedule(wait=2, warmup=1, active=3, repeat=1), on_trace_ready=told) as own:\n"
        "    while True:\n        step()\n        own.step()\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.manifest.step_source == "profiler"
    assert "own 3\n" in captured.output
    assert captured.manifest.notes == ()


@pytest.mark.parametrize("whole_run", [True, False])
def test_a_profiler_around_everything_is_paused_and_goes_on(tmp_path: Path, whole_run: bool) -> None:
    """Stopped with the script right after our windows, it shows what came before them."""
    text = START + (
        "import time\ntry:\n    with profile() as own:\n"
        "        for _ in range(100):  # three seconds: it is paused after one\n"
        "            time.sleep(0.03)\n            step()\n"
        "finally:\n    print('events', len(own.events()) > 0, flush=True)\n"
    )
    asked = request(write(tmp_path, text), whole_run=whole_run, environment=SOON)
    captured = Captured(asked, tmp_path)
    assert "events True\n" in captured.output
    assert "Traceback" not in captured.output
    assert any("paused" in note for note in captured.manifest.notes)
    assert captured.lines()["train.py", 8] >= 3


def test_a_profiler_that_ends_while_we_record_has_what_it_recorded_before(tmp_path: Path) -> None:
    """It ends in a range that was begun in our recording, which therefore has to go on."""
    text = START + (
        "from torch.profiler import record_function\n"
        "own, done, paused = profile(), 0, False\nown.start()\n"
        "def recorded():\n    return torch._C._autograd._profiler_enabled()\n"
        "while True:\n    done += 1\n"
        "    with record_function('wide'):\n        step()\n"
        "        paused = paused or not recorded()\n"
        "        if own is not None and paused and recorded():\n"
        "            own.stop()\n"
        "            print('goes on', recorded(), flush=True)\n"
        "            print('own', sum(e.name == 'aten::addmm' for e in own.events()), flush=True)\n"
        "            own.export_chrome_trace('own.json')\n            own = None\n"
    )
    captured = Captured(request(write(tmp_path, text), environment=SOON), tmp_path)
    assert "goes on True\n" in captured.output
    assert int(captured.output.partition("\nown ")[2].partition("\n")[0]) >= 30
    assert (tmp_path / "own.json").read_text().count("aten::addmm") >= 30
    assert "Traceback" not in captured.output
    assert len(captured.manifest.captured) == 3


def test_short_cycles_of_the_scripts_profiler_do_not_keep_us_from_measuring(tmp_path: Path) -> None:
    text = START + (
        "own = profile(schedule=schedule(wait=0, warmup=1, active=1))\n"
        "own.start()\nwhile True:\n    step()\n    own.step()\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert len(captured.manifest.captured) == 3
    assert any("paused" in note for note in captured.manifest.notes)


@pytest.mark.skipif(sys.gettrace() is not None, reason="this test run is traced itself")
def test_the_scripts_trace_function_is_still_called(tmp_path: Path) -> None:
    text = START + (
        "seen = {8: 0, 9: 0}\nsteps = 0\n"
        "def local(frame, event, argument):\n"
        "    if event == 'line':\n        seen[frame.f_lineno] += 1\n    return local\n"
        "def trace(frame, event, argument):\n    return local if frame.f_code is step.__code__ else None\n"
        "sys.settrace(trace)\n"
        "def main():\n    global steps\n    while True:\n        steps += 1\n        step()\n"
        "try:\n    main()\nfinally:\n    print(seen[8] == seen[9] == steps, sys.gettrace() is trace)\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.output == "True True\n"
    assert captured.lines()["train.py", 8] == 3 or sys.version_info < (3, 12)
    assert captured.lines()["train.py", 9] >= 3
