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

from tests.conftest import LIMIT_S, environment

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
    (tmp_path / "long.py").write_text(LONG)
    reader, writer = os.pipe()
    more = {"waits": "1"} if stage == "waiting" else {}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "warpline",
            "profile",
            "--steps",
            "50",
            "--progress-fd",
            str(writer),
            "long.py",
        ],
        cwd=tmp_path,
        env=environment(**more),
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
        while not (tmp_path / "pid").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1] == "warpline: interrupted"
    assert list((tmp_path / ".warpline/runs").iterdir()) == []
    assert not alive(int((tmp_path / "pid").read_text()))
