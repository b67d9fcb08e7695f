"""Ctrl-C, a polite request to end, and kill -9, at every stage: nothing of the run is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.launching import left_behind, write
from warpline.capture import launch

SLOW = """\
import atexit, torch, time
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
atexit.register(print, "atexit ran", flush=True)
data = torch.utils.data.DataLoader(range(10**9), batch_size=4, num_workers=1)
if WAITS:
    print("waits", flush=True)
    while True:
        time.sleep(0.01)
try:
    for x in data:
        time.sleep(0.05)
        net(torch.randn(4, 16)).sum().backward()
        optimizer.step()
finally:
    print("finally ran", flush=True)
    if ENDS_SLOWLY:
        time.sleep(2)
"""

#: A program that captures, and says on its standard output which stage it is at.
PROGRAM = """\
import sys
from pathlib import Path
from warpline.capture import launch
from warpline.wire.run import Request
script = Path(sys.argv[1])
asked = Request(target=str(script), cwd=str(script.parent), python=sys.executable, steps=40, warmup=5)
try:
    launch.capture(asked, script.parent / "runs" / "run", lambda p: print(p.stage, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""
ROOT = Path(__file__).parents[2]


def at_stage(folder: Path, stage: str) -> subprocess.Popen[str]:
    """The program, at that stage."""
    text = SLOW.replace("WAITS", str(stage == "waiting")).replace("ENDS_SLOWLY", str(stage == "ending"))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(write(folder, text))],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT / "server"), os.environ["PYTHONPATH"]]),
            "WARPLINE_TEST": str(folder),
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.PIPE,
        stderr=(folder / "output.txt").open("w"),
        text=True,
        # Started from a background job, Ctrl-C would be ignored from the beginning.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == stage:
            return process
    raise AssertionError(f"never at {stage}: {(folder / 'output.txt').read_text()}")


def nothing_left(folder: Path) -> None:
    until = time.monotonic() + 60
    while left_behind(f"WARPLINE_TEST={folder}") and time.monotonic() < until:
        time.sleep(0.05)
    assert left_behind(f"WARPLINE_TEST={folder}") == []


@pytest.mark.parametrize("stage", ["starting", "waiting", "warmup", "timing", "capturing", "ending"])
def test_ctrl_c(tmp_path: Path, stage: str) -> None:
    process = at_stage(tmp_path, stage)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    nothing_left(tmp_path)
    runs = sorted(entry.name for entry in (tmp_path / "runs").iterdir())
    assert runs == (["run"] if stage == "ending" else []), "complete or absent"
    if stage in ("warmup", "timing", "capturing"):
        assert (tmp_path / "output.txt").read_text().count("finally ran") == 1
        assert (tmp_path / "output.txt").read_text().count("atexit ran") == 1


def test_a_polite_request_to_end(tmp_path: Path) -> None:
    process = at_stage(tmp_path, "warmup")
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode == 130
    nothing_left(tmp_path)
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux tells a child that its parent is gone"
)
def test_kill_takes_the_script_along(tmp_path: Path) -> None:
    process = at_stage(tmp_path, "warmup")
    process.kill()
    process.communicate(timeout=120)
    nothing_left(tmp_path)
    assert not (tmp_path / "runs" / "run").exists()
    launch.remove_abandoned(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []
