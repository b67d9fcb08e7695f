"""``warpline attach`` to a process that is training."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment, warpline

pytestmark = pytest.mark.process

SCRIPT = """
import sys, time, torch

def main(times):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    end = time.monotonic() + 100
    for step, x in enumerate(iter(lambda: torch.ones(4, 8), None)):
        print(time.monotonic(), file=times, flush=True)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        time.sleep(0.05)
        if step == 0:
            print("training", flush=True)
        if time.monotonic() > end:
            break

main(open(sys.argv[1], "w"))
"""


def test_the_costly_line_of_a_training_process_and_its_step_time(tmp_path: Path) -> None:
    script, times = tmp_path / "train.py", tmp_path / "times"
    script.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script, times], env=environment(), stdout=subprocess.PIPE, text=True
    ) as trains:
        try:
            assert trains.stdout is not None
            assert trains.stdout.readline() == "training\n"
            found = warpline("attach", str(trains.pid), "--seconds", "3", cwd=tmp_path)
            assert trains.poll() is None, "it goes on"
        finally:
            trains.kill()
    assert found.returncode == 0, found.stderr
    rows = found.stdout.splitlines()
    said = re.fullmatch(r"step of main \(train.py\) grew by 1 every ([\d.]+) ms \(\d+ times\)", rows[1])
    assert said, found.stdout
    began = [float(line) for line in times.read_text().splitlines()[1:]]
    steps_ms = [100 * (end - begin) for begin, end in zip(began, began[10:], strict=False)]  # means of ten
    assert 0.9 * min(steps_ms) <= float(said[1]) <= 1.1 * max(steps_ms)
    assert rows[2] == "Times are per iteration of the loop that counts step."
    assert re.fullmatch(r" *[\d.]+ % +[\d.]+ ms  train.py:13  time.sleep\(0.05\)", rows[3]), found.stdout


def test_a_process_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    found = warpline("attach", str(2**22 + os.getpid()), cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr.startswith("warpline: there is no process")
