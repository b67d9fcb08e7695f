"""Plain Python beside a device, in one process and in two: against the script's own clock.

Lines are sampled on a CPU only (``windows/sampling.py``): here their times come from the recorded lines,
scaled to the step that was timed without any recording.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import msgspec
import pytest

from warpline.model.report import Report

ROOT = Path(__file__).parents[2]
SCRIPT = """\
import json, os, time
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
ranks = int(os.environ.get("WORLD_SIZE", "1"))
net = torch.nn.Linear(64, 64).to(device)
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.randn(64, 64, device=device)
took, slept = [], []

def work(count):
    total = 0
    for value in range(count):
        total += value * value
    return total

try:
    for step in range(100000):
        begun = time.perf_counter()
        work(80000)
        worked = time.perf_counter()
        time.sleep(0.005)
        took.append(worked - begun)
        slept.append(time.perf_counter() - worked)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
finally:
    if os.environ.get("RANK", "0") == "0":
        with open("took.json", "w") as file:
            json.dump([took, slept], file)
"""
WORK = range(SCRIPT.splitlines().index("def work(count):") + 2, SCRIPT.splitlines().index("try:"))
CALL = SCRIPT.splitlines().index("        work(80000)") + 1
SLEEP = SCRIPT.splitlines().index("        time.sleep(0.005)") + 1
LAUNCHER = f"{sys.executable} -m torch.distributed.run --standalone --nproc-per-node 2"


@pytest.mark.parametrize("more", [[], ["--launcher", LAUNCHER]], ids=["alone", "ranks"])
def test_a_long_function_takes_what_its_own_clock_says(tmp_path: Path, more: list[str]) -> None:
    script, found = tmp_path / "train.py", tmp_path / "report.json"
    script.write_text(SCRIPT)
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "warpline", "profile", *more, "--probe", "0", "--json", str(found)]
    subprocess.run(
        [*command, "--timeout", "150", "--run-dir", str(tmp_path / "runs"), str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=True,
        timeout=250,
    )
    report = msgspec.json.decode(found.read_bytes(), type=Report)
    times = json.loads((tmp_path / "took.json").read_text())
    took_ms, slept_ms = (1000 * median(one) for one in times)
    ms = {line.line: line.step_ms for line in report.lines}
    worked = sum(ms.get(line, 0.0) for line in (*WORK, CALL))
    # Ranks wait for each other in the backward pass, in captured steps up to 2 ms longer or shorter than in
    # timed ones (of 13 ms): all lines are scaled by that.
    assert worked == pytest.approx(took_ms, rel=0.25 if more else 0.15), ms
    assert ms[SLEEP] == pytest.approx(slept_ms, rel=0.2 if more else 0.1), ms
