"""A command with a budget ends a tenth late at most, whatever hangs in it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline.capture import tree
from warpline.model.problem import Problem

BUDGET_S = 3.0
#: Until its end is seen here, on a machine that is busy.
NOTICED_S = 2.0
#: Each hangs where the budget's own clock does not look: the last resort has to end it.
HANGS = {
    "swallows the alarm": """
while True:
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        pass
""",
    "waits for a process": """
target = subprocess.Popen(
    [sys.executable, "-c", DEAF], env={**os.environ, tree.MARK: f"{os.getpid()}-test"}, start_new_session=True
)
threading.Thread(target=target.wait).start()
while target.poll() is None:
    try:
        target.wait()
    except KeyboardInterrupt:
        pass
""",
    "a thread at exit": "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "atexit": "import atexit; atexit.register(time.sleep, 1000)",
}
PROGRAM = """
import os, pathlib, signal, subprocess, sys, threading, time
began = time.monotonic()
pathlib.Path(__file__).with_suffix(".began").write_text(str(began))
from warpline.capture import tree
from warpline.commands.deadline import Deadline
DEAF = "import signal, time\\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\\ntime.sleep(1000)"
limit = Deadline(began, {budget})
with limit.last_resort(), limit.enforced([]):
{hang}
print("printed", flush=True)
"""


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str
    took_s: float  # from the program's own beginning on: how long its interpreter took to start is no matter
    left: list[str]  # ids of processes that it has left behind


def ended(hang: str, script: Path) -> Ended:
    """The program with ``hang`` in it, at its end."""
    body = "".join(f"    {line}\n" for line in hang.strip().splitlines())
    script.write_text(PROGRAM.format(budget=BUDGET_S, hang=body))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    took_s = time.monotonic() - float(script.with_suffix(".began").read_text())
    mark = f"{tree.MARK}={process.pid}-".encode()
    left = []
    for entry in tree.processes():
        try:
            left += [entry.name] * (mark in (entry / "environ").read_bytes())
        except OSError:
            continue
    return Ended(process.returncode, out, err, took_s, left)


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ended]]]:
    """All at once: they wait."""
    folder = tmp_path_factory.mktemp("deadline")
    with ThreadPoolExecutor(len(HANGS)) as pool:
        yield {
            name: pool.submit(ended, hang, folder / f"{number}.py")
            for number, (name, hang) in enumerate(HANGS.items())
        }


@pytest.mark.parametrize("name", HANGS)
def test_it_ends_a_tenth_late_and_leaves_nothing(name: str, endings: dict[str, Future[Ended]]) -> None:
    found = endings[name].result()
    assert found.took_s <= 1.1 * BUDGET_S + NOTICED_S
    if name == "swallows the alarm":
        assert found.status == 1
        assert "is still running" in found.err
    else:  # the command itself came to its end: its status stands, and what it printed
        assert found.status == 0, found.err
        assert found.out == "printed\n"
        assert not found.err
    assert not found.left


def test_a_command_that_ends_in_time_is_left_alone() -> None:
    from warpline.commands.deadline import Deadline

    did: list[object] = []
    began, before = time.monotonic(), set(threading.enumerate())
    with Deadline(began, 0.5).last_resort(kill=lambda: did.append("killed"), leave=did.append):
        pass
    (watch,) = set(threading.enumerate()) - before
    watch.join(LIMIT_S)
    assert time.monotonic() >= began + 0.5
    assert not did


def test_it_kills_first_and_leaves_with_the_commands_status() -> None:
    from warpline.commands.deadline import Deadline

    did: list[object] = []
    gone = threading.Event()

    def leave(status: int) -> None:
        did.append(status)
        gone.set()

    with Deadline(time.monotonic(), 0.2).last_resort(kill=lambda: did.append("killed"), leave=leave):
        assert gone.wait(LIMIT_S)
    assert did[0] == "killed"
    assert did[-1] == 1


def test_a_problem_passes_through() -> None:
    from warpline.commands.deadline import Deadline

    with pytest.raises(Problem), Deadline(time.monotonic(), 100.0).last_resort(kill=list, leave=list):
        raise Problem("as it was", 2)


def test_what_the_command_took_to_begin_is_set_aside_for_its_end() -> None:
    from warpline.commands.deadline import MOST_RESERVED, RESERVED, Deadline

    quick, slow, slowest = (Deadline(time.monotonic() - took_s, 20.0) for took_s in (0.2, 3.0, 15.0))
    for one in (quick, slow, slowest):
        one.timing_begins()
    assert quick.reserved_s == RESERVED * 20.0
    assert slow.reserved_s == pytest.approx(3.0, abs=0.2)
    assert slowest.reserved_s == MOST_RESERVED * 20.0
    for one in (quick, slow, slowest):
        killed, last = one.killing
        assert one.end < killed <= last <= one.began + 1.1 * one.budget_s - 0.02 * one.budget_s
