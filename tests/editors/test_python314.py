"""``warpline attach`` to a real Python 3.14, which ``install.sh`` gets. It has no torch: a module stands for
the wrapper that torch puts around ``step`` (tests/capture/test_attach.py looks at torch's own)."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest

from tests.conftest import environment, warpline
from warpline.capture import stepping
from warpline.capture.attach import attach

OPTIMIZER = """
import functools

class Optimizer:
    @staticmethod
    def profile_hook_step(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self, *_ = args
            return func(*args, **kwargs)
        return wrapper

class Adam(Optimizer):
    @Optimizer.profile_hook_step
    def step(self):
        pass
"""
SCRIPT = """
import sys, time
from torch.optim.optimizer import Adam

optimizer, end = Adam(), time.monotonic() + 100
while time.monotonic() < end:
    time.sleep(0.02)
    print(time.monotonic(), sys.monitoring.get_tool(4), flush=True)
    optimizer.step()
"""


@contextmanager
def training(python: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "torch/optim").mkdir(parents=True)
    (folder / "torch/optim/optimizer.py").write_text(OPTIMIZER, encoding="utf-8")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    with (
        (folder / "said").open("wb") as out,
        subprocess.Popen(
            [python, "train.py"],
            cwd=folder,
            env={**environment(), "TMPDIR": str(folder)},
            stdout=out,
            stderr=out,
        ) as trains,
    ):
        try:
            yield trains
        finally:
            trains.kill()


def test_a_running_process_times_its_steps(editors: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with training(editors / "python3.14/python3.14", tmp_path) as trains:
        read = warpline("attach", str(trains.pid), "--seconds", "1", "--read-only", cwd=tmp_path)
        assert "The time of a step is unknown" in read.stdout, read.stderr
        assert "warpline" not in said.read_text(), "nothing of ours ran there"
        for _ in range(2):  # the second as the first: nothing is left of it
            found = warpline("attach", str(trains.pid), "--seconds", "2", cwd=tmp_path)
            assert found.returncode == 0, found.stderr
            time.sleep(1)
        assert trains.poll() is None, "it goes on"
    rows = found.stdout.splitlines()
    steps = re.fullmatch(r"Adam steps every ([\d.]+) ms \(\d+ times, at most [\d.]+ ms\)", rows[1])
    assert steps, found.stdout
    assert rows[2] == "Times are per step of Adam."
    lines = [line.split(" ", 1) for line in said.read_text().splitlines()[:-1]]  # it is killed
    windows = [
        (tool, [float(at) for at, _ in those]) for tool, those in groupby(lines, key=lambda one: one[1])
    ]
    assert [tool for tool, _ in windows] == ["None", "warpline attach"] * 2 + ["None"]
    watched = windows[3][1]
    gaps_ms = [100 * (after - before) for before, after in zip(watched, watched[10:], strict=False)]
    assert 0.9 * min(gaps_ms) <= float(steps[1]) <= 1.1 * max(gaps_ms)
    assert not list(tmp_path.glob("warpline-attach-*")), "what was run there is gone"


def test_a_machine_that_is_slow_to_ask(
    editors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pretended: on a busy one, the interpreter that asks took longer to start than the steps are watched."""
    monkeypatch.setattr(stepping, "_ASK", f"import time; time.sleep(2); {stepping._ASK}")
    with training(editors / "python3.14/python3.14", tmp_path) as trains:
        found = attach(trains.pid, 1)
    assert [step.name for step in found.steps] == ["Adam"]
    assert found.steps[0].fills(1)


def test_one_that_forbids_it_is_only_read(editors: Path, tmp_path: Path) -> None:
    forbids = {**environment(), "PYTHON_DISABLE_REMOTE_DEBUG": "1", "TMPDIR": str(tmp_path)}
    command = [editors / "python3.14/python3.14", "-c", "import time; time.sleep(100)"]
    with subprocess.Popen(command, env=forbids) as sleeps:
        try:
            found = warpline("attach", str(sleeps.pid), "--seconds", "1", cwd=tmp_path)
        finally:
            sleeps.kill()
    assert found.returncode == 0, found.stderr
    assert "samples of the main thread" in found.stdout
    assert not list(tmp_path.glob("warpline-attach-*"))
