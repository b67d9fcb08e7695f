"""Calls of torch's allocator into the driver stand at the lines that cause them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from warpline.model.report import Report

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import torch

weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for step in range(400):
    torch.cuda.empty_cache()  # gives back
    large = torch.ones(64 << 20, device="cuda")  # asks
    loss = (large[:1024] * weight).sum()
    del large
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_driver_calls_stand_at_their_lines(tmp_path: Path) -> None:
    script, found = tmp_path / "churn.py", tmp_path / "report.json"
    script.write_text(SCRIPT)
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "warpline", "profile", "--probe", "0", "--json", str(found)]
    subprocess.run(
        [*command, "--timeout", "100", "--run-dir", str(tmp_path / "runs"), str(script)],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        timeout=200,
    )
    report = msgspec.json.decode(found.read_bytes(), type=Report)
    calls = {line.line: line.allocator_calls for line in report.lines if line.allocator_calls}
    texts = SCRIPT.splitlines()
    marked = {at for at, text in enumerate(texts, 1) if "# gives back" in text or "# asks" in text}
    assert set(calls) >= marked, f"the marked lines call the driver every step: {calls}"
    assert all(calls[at] >= 1 for at in marked), calls
    assert sum(calls[at] for at in marked) > 0.8 * sum(calls.values()), calls
