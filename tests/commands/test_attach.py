"""``warpline attach`` to a process that is training."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment, warpline

pytestmark = pytest.mark.process

SCRIPT = """
import time, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
print("training", flush=True)
end = time.monotonic() + 100
while time.monotonic() < end:
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    time.sleep(0.05)
"""


def test_the_costly_line_of_a_training_process_is_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, script], env=environment(), stdout=subprocess.PIPE, text=True
    ) as trains:
        try:
            assert trains.stdout is not None
            assert trains.stdout.readline() == "training\n"
            found = warpline("attach", str(trains.pid), "--seconds", "2", cwd=tmp_path)
            assert trains.poll() is None, "it goes on"
        finally:
            trains.kill()
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[1].endswith(" %  train.py:11  time.sleep(0.05)"), found.stdout


def test_a_process_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    found = warpline("attach", str(2**22 + os.getpid()), cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr.startswith("warpline: there is no process")
