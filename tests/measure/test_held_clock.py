"""The clock of benchmarks holds a script that compiles until its turn, and it is not compiled again then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment

CLOCK = Path(__file__).resolve().parent.parent.parent / "benchmarks/bets/beats.py"
SCRIPT = """\
import torch
from torch import nn

torch._logging.set_logs(recompiles=True)
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
net.forward = torch.compile(net.forward, backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(20):
    net(torch.randn(4, 8)).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_compiled_before_its_turn_is_not_compiled_again(tmp_path: Path, threads: int) -> None:
    """With another number of threads it would be, which the clock then takes for the script's turns."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    held = {"BEATS_HOLD": "beats", "BEATS_READY": str(tmp_path / "ready"), "BEATS_THREADS": str(threads)}
    env = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, str(CLOCK), "5", str(script)],
        input="0\n",
        text=True,
        capture_output=True,
        timeout=LIMIT_S,
        env={**env, **held},
        check=False,
    )
    said = done.stderr.strip().splitlines()
    assert json.loads(said[-1])["beats"] == 16, done.stderr
    assert (tmp_path / "ready").exists()
    assert ("num_threads" in done.stderr) == (threads != 1)
