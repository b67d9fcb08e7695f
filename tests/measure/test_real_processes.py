"""Real scripts in real processes. Their steps differ by sleeps so long that no load can turn the
direction round; nothing is asserted about how long anything takes.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline.measure.candidate import Candidate
from warpline.measure.contest import measure
from warpline.measure.pairs import Limits
from warpline.measure.timed import Processes
from warpline.model.problem import Problem
from warpline.wire.run import Request

SCRIPT = """\
import torch
import pace

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(400):
    loss = model(torch.ones(2, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pace.rest(step)
"""
PACE = """\
import time


def rest(step):
    time.sleep(0.05)
"""
QUICK = PACE.replace("0.05", "0.005")
#: One round, after the one that warms up: enough to see a direction as wide as this one.
FEW = Limits(first=1, rounds=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "pace.py").write_text(PACE)
    return tmp_path


def request(folder: Path) -> Request:
    variables = {"OMP_NUM_THREADS": "1"}
    target = str(folder / "train.py")
    return Request(target=target, cwd=str(folder), python=sys.executable, environment=variables, warmup=2)


def candidate(folder: Path, text: str, file: str = "pace.py") -> Candidate:
    return Candidate(("f",), "a fix", {str(folder / file): text})


def sources(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def test_a_faster_module_is_found_faster_and_no_file_is_touched(folder: Path) -> None:
    before = sources(folder)
    found = measure(request(folder), candidate(folder, QUICK), FEW)
    assert found.measured is not None, found.reason
    assert found.measured.speedup > 1.2
    assert found.measured.loss_drift == 0.0
    assert found.step_ms is not None
    assert found.step_ms < found.baseline_step_ms
    assert sources(folder) == before
    # Python may keep the bytecode of the original, as in any run; never that of the edited text.
    assert not [path for path in folder.rglob("*.pyc") if struct.pack("<d", 0.005) in path.read_bytes()]


def test_a_changed_script_finds_its_data_where_the_profile_found_it(folder: Path, tmp_path: Path) -> None:
    """Beside the script, also through a link, and in the working folder of the profile."""
    (store := tmp_path / "store").mkdir()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (store / "beside.txt").write_text("1")
    (folder / "data").symlink_to(store)
    (elsewhere / "here.txt").write_text("1")
    reads = (
        "import os\nopen(os.path.join(os.path.dirname(__file__), 'data', 'beside.txt'))\nopen('here.txt')\n"
    )
    changed = candidate(folder, reads + SCRIPT, "train.py")
    timed = Processes()(replace(request(folder), cwd=str(elsewhere)), changed.overlay, LIMIT_S)
    assert timed.step_ms > 0


def test_a_candidate_that_crashes_says_how(folder: Path) -> None:
    crashing = PACE + "    assert step < 3, 'it broke'\n"
    with pytest.raises(Problem, match="AssertionError: it broke"):
        Processes()(request(folder), candidate(folder, crashing).overlay, LIMIT_S)


def test_a_candidate_that_hangs_is_ended_at_its_limit(folder: Path) -> None:
    hanging = "import threading\n\n\ndef rest(step):\n    threading.Event().wait()\n"
    with pytest.raises(Problem) as caught:
        Processes()(request(folder), candidate(folder, hanging).overlay, 5.0)
    assert caught.value.status == 1
    assert "within 5 s" in str(caught.value)


def test_cancel_ends_the_process_that_runs(folder: Path) -> None:
    cancelled, mark = threading.Event(), folder / "running"
    waiting = telling(mark)
    failed: list[Problem] = []

    def work() -> None:
        try:
            Processes()(request(folder), candidate(folder, waiting).overlay, LIMIT_S, cancelled)
        except Problem as problem:
            failed.append(problem)

    # Far too many steps to end by itself before it is cancelled.
    (folder / "train.py").write_text(SCRIPT.replace("range(400)", "range(10**9)"))
    before = sources(folder)
    worker = threading.Thread(target=work)
    worker.start()
    wait_for(mark, worker)
    cancelled.set()
    worker.join(LIMIT_S)
    assert not worker.is_alive()
    # The timing may have come to its end in the same moment; a failure can only be the cancel.
    assert all(problem.status == 130 for problem in failed)
    assert sources(folder) == before


def test_kill_9_leaves_the_sources_as_they_were(folder: Path) -> None:
    # Far too many steps to end by itself before it is killed.
    (folder / "train.py").write_text(SCRIPT.replace("range(400)", "range(10**9)"))
    before, mark = sources(folder), folder / "running"
    overlay = {str(folder / "pace.py"): telling(mark)}
    program = (
        "import sys\n"
        "from warpline.measure.timed import Processes\n"
        "from warpline.wire.run import Request\n"
        f"request = Request(target={str(folder / 'train.py')!r}, python=sys.executable)\n"
        f"Processes()(request, {overlay!r}, {LIMIT_S})\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment(), stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_for(mark, process)  # the changed text is running now
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert sources(folder) == before


def telling(mark: Path) -> str:
    """A module that says that it runs, and goes on for a while."""
    touch = f"    pathlib.Path({str(mark)!r}).touch()\n"
    return PACE.replace("import time", "import pathlib\nimport time") + touch


def wait_for(mark: Path, alive: threading.Thread | subprocess.Popen[bytes]) -> None:
    """Until ``mark`` exists; fails when what should make it ended, or takes too long."""
    pause, waited = threading.Event(), 0.0
    while not mark.exists():
        ended = not alive.is_alive() if isinstance(alive, threading.Thread) else alive.poll() is not None
        assert not ended or mark.exists(), "it ended before the changed script ran"
        assert waited < LIMIT_S
        pause.wait(0.1)
        waited += 0.1
