"""Ctrl-C at the command line, at whatever stage: one line, status 130, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment, warpline

LONG = """\
import os, time
import torch
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
with open("pid.part", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.part", "pid")
while True:
    if "waits" in os.environ:
        time.sleep(0.01)
        continue
    time.sleep(0.05)
    weight.sum().backward()
    optimizer.step()
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("stage", ["waiting", "timing", "capturing"])
def test_ctrl_c(tmp_path: Path, stage: str) -> None:
    assert interrupted(tmp_path, stage, "--steps", "50") == "warpline: interrupted"
    assert list((tmp_path / ".warpline/runs").iterdir()) == []


def test_ctrl_c_in_a_long_run_keeps_what_was_measured(tmp_path: Path) -> None:
    said = interrupted(tmp_path, "ending", "--steps", "1", "--every", "20")
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    assert said == f"warpline: interrupted; what was measured until then is kept: warpline show {run}"
    shown = warpline("show", str(run), cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "long.py" in shown.stdout


def interrupted(folder: Path, stage: str, *words: str) -> str:
    """The last line of a profile with the options ``words`` that Ctrl-C ends in a stage."""
    (folder / "long.py").write_text(LONG)
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "warpline", "profile", *words, "--progress-fd", str(writer), "long.py"],
        cwd=folder,
        env=environment(**({"waits": "1"} if stage == "waiting" else {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[writer],
        # A job started in the background ignores SIGINT, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as lines:
        for line in lines:
            if json.loads(line)["stage"] == stage:
                break
        until = time.monotonic() + LIMIT_S
        while not (folder / "pid").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert out == ""
    assert not alive(int((folder / "pid").read_text()))
    return err.splitlines()[-1]
