"""A script with fewer steps than the windows take is run a second time once, not for every measurement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warpline.measure.timed import Processes
from warpline.wire.run import Request

SCRIPT = """\
import pathlib
with open("runs.log", "a") as log:
    log.write("run\\n")
import torch
net = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for step in range(STEPS):
    optimizer.zero_grad()
    net(torch.ones(8, 64)).sum().backward()
    optimizer.step()
"""


@pytest.mark.process
@pytest.mark.parametrize("steps", [4, 14])
def test_its_length_is_found_out_once(tmp_path: Path, steps: int) -> None:
    script, log = tmp_path / "short.py", tmp_path / "runs.log"
    script.write_text(SCRIPT.replace("STEPS", str(steps)))
    request = Request(
        target=str(script),
        cwd=str(tmp_path),
        python=sys.executable,
        environment={"OMP_NUM_THREADS": "1"},
    )
    processes = Processes()
    runs = []
    for _ in range(2):
        processes(request, {}, 100.0, None)
        runs.append(len(log.read_text().splitlines()))
    assert runs == [2, 3]
