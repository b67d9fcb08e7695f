"""Two scripts timed in slices: both alive, one of them standing still. Nothing is asserted about how long
anything takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline.capture import tree, turn
from warpline.measure import timed
from warpline.measure.background import BackgroundTiming
from warpline.measure.candidate import Candidate
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.rounds import play
from warpline.measure.slices import Left, shared
from warpline.measure.timed import Processes, Timed, sliced
from warpline.model.problem import Problem
from warpline.wire.run import Request
from warpline.wire.timing import Timing

pytestmark = pytest.mark.skipif(not turn.possible(), reason="elsewhere scripts are timed one after the other")

#: Writes a line for each step, and its loader's workers one for each sample.
SCRIPT = """\
import os, pathlib, torch
log = os.open(pathlib.Path(__file__).with_name("log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 10**6

    def __getitem__(self, index):
        os.write(log, b"NAME sample\\n")
        return torch.ones(2)

weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
for sample in torch.utils.data.DataLoader(Samples(), num_workers=WORKERS):
    (weight * sample).sum().backward()
    optimizer.step()
    os.write(log, b"NAME step\\n")
"""
WARMUP, LENGTH, SLICES = 2, 4, 8


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    (tmp_path / "train.py").write_text(SCRIPT)
    return Request(
        target=str(tmp_path / "train.py"),
        cwd=str(tmp_path),
        python=sys.executable,
        environment={"OMP_NUM_THREADS": "1"},
        warmup=WARMUP,
    )


def overlay(asked: Request, name: str, workers: int = 1) -> dict[str, str]:
    return {asked.target: SCRIPT.replace("NAME", name).replace("WORKERS", str(workers))}


def both(asked: Request, workers: int = 1) -> list[tuple[dict[str, str], float]]:
    return [(overlay(asked, name, workers), LIMIT_S) for name in ("plain", "changed")]


@pytest.fixture
def ready(asked: Request) -> Processes:
    """As after a process that was timed by itself: ``SLICES`` slices of ``LENGTH`` steps."""
    processes = Processes()
    processes._timed, processes._steps = True, (2 * LENGTH * SLICES + 2) // 3
    return processes


def compared(
    timer: Processes,
    asked: Request,
    processes: list[tuple[dict[str, str], float]],
    cancelled: threading.Event | None = None,
) -> list[Timed] | None:
    """Plain and changed of each pair; None when there is none."""
    found: list[Timed] = []
    shared(
        timer,
        asked,
        processes[0],
        processes[1:],
        cancelled,
        lambda at, plain, changed, s: found.extend((plain, changed)),
    )
    return found or None


def log(asked: Request) -> list[str]:
    file = Path(asked.cwd, "log")
    return file.read_text().splitlines() if file.exists() else []


def test_one_works_while_the_other_and_its_workers_stand_still(asked: Request, ready: Processes) -> None:
    found = compared(ready, asked, both(asked))
    assert found is not None
    assert all(one.step_ms > 0 and len(one.losses) > WARMUP for one in found)
    # Four batches of the one worker fit into a slice.
    assert [len(one.slices) for one in found] == [SLICES, SLICES]
    turns = [(name, list(lines)) for name, lines in groupby(log(asked), lambda line: line.split()[0])]
    assert [name for name, _ in turns[: SLICES + 3]] == ["plain", "changed"] * (SLICES // 2 + 1) + ["plain"]
    steps = [sum(line.endswith("step") for line in lines) for _, lines in turns]
    # The warm-ups, a slice, then twice the end of one pair and the beginning of the next.
    assert steps[2 : SLICES + 2] == [LENGTH + 1] + [2 * (LENGTH + 1)] * (SLICES - 1)
    assert steps[0] == steps[1]


def test_slices_hold_many_bursts_of_the_workers() -> None:
    bursts = [30.0, 1.0, 1.0] * 32  # three workers
    timing = Timing(tuple(int(1e6 * each) for each in bursts), workers=3)
    assert sliced(timing, 12).slices == pytest.approx([32.0 / 3] * 8)
    assert sliced(timing, 48).slices == ()
    assert sliced(timing, 48).step_ms == pytest.approx(32.0 / 3)


EXCLUSIVE = "import fcntl\nkept = open(__file__)\nfcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"


def test_scripts_that_cannot_both_be_alive_are_timed_one_after_the_other(asked: Request) -> None:
    texts = [EXCLUSIVE + overlay(asked, name, workers=0)[asked.target] for name in ("plain", "changed")]
    pairs = Pairs(Candidate(("f",), "a fix", {asked.target: texts[1]}, {asked.target: texts[0]}))
    processes = Processes(step_ms=100.0)
    for number in range(2):
        play(asked, [pairs], [number], limits=Limits(first=2), timer=processes)
    assert not pairs.failure
    assert len(pairs.plain) == len(pairs.changed) == 2
    assert not any(one.slices for one in (*pairs.plain, *pairs.changed))
    assert processes.slice_steps is None


def test_a_script_that_ends_early_has_fewer_slices(asked: Request, ready: Processes) -> None:
    ready._steps = 10 * LENGTH * SLICES
    short = [(one, limit) for one, limit in both(asked, workers=0)]
    for one, _ in short:
        one[asked.target] = one[asked.target].replace("10**6", "200")
    found = compared(ready, asked, short)
    assert found is not None
    assert all(len(one.slices) >= SLICES for one in found)


#: Ten steps an epoch; REST seconds pass before each.
EPOCHS = """\
import time, torch

class Loader(torch.utils.data.DataLoader):
    def __iter__(self):
        time.sleep(REST)
        return super().__iter__()

weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
loader = Loader(torch.ones(10, 2))
while True:
    for sample in loader:
        time.sleep(0.01)
        (weight * sample).sum().backward()
        optimizer.step()
"""


def test_what_happens_between_epochs_is_part_of_the_gain(asked: Request, ready: Processes) -> None:
    texts = [{asked.target: EPOCHS.replace("REST", rest)} for rest in ("0.3", "0.0")]
    found = compared(ready, asked, [(text, LIMIT_S) for text in texts])
    assert found is not None
    plain, changed = found
    assert plain.epochs > 0
    assert plain.epoch_ms > 15  # 0.3 seconds over ten steps are 30
    pairs = Pairs(Candidate(("f",), "a fix"))
    pairs.add(plain, changed, 0.0)
    assert pairs.log_ratios()[0] > 0.4


class Stated(Processes):
    """Says what it is asked to time, and makes up the rest."""

    def __init__(self) -> None:
        super().__init__(step_ms=10.0)
        self._timed = True
        self.asked: list[str] = []

    def __call__(self, request: Request, overlay: object, limit_s: float, cancelled: object = None) -> Timed:
        self.asked.append("one")
        return Timed(10.0)


def sharing(timer: Stated, request: Request, plain: object, changed: Sequence[object], *more: object) -> Left:
    timer.asked.append("two")
    _, keep, starting, _ = more
    assert callable(keep)
    assert callable(starting)
    for number in range(len(changed)):
        assert starting(number)
        keep(number, Timed(10.0), Timed(10.0), 1.0)
    return Left()


@pytest.mark.parametrize(("launcher", "wanted"), [((), ["two"]), (("torchrun",), ["one", "one"])])
def test_ranks_of_a_launcher_are_not_stopped(
    launcher: tuple[str, ...], wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 1)  # nothing is started ahead
    monkeypatch.setattr("warpline.measure.slices.shared", sharing)
    timer = Stated()
    request = Request(target="/train.py", launcher=launcher)
    play(request, [Pairs(Candidate(("f",), "a fix", {"/train.py": ""}))], [0], limits=Limits(), timer=timer)
    assert timer.asked == wanted


#: Says when it begins, and leaves time for another one's start. No more than MOST of them can be alive.
SLOW_START = """\
import fcntl, os, pathlib, time
here = pathlib.Path(__file__).parent
log = os.open(here / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, b"NAME begins\\n")
for slot in range(MOST):
    kept = open(here / f"slot{slot}", "w")
    try:
        fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        pass
else:
    raise MemoryError("no room for so many")
time.sleep(2.0)
"""


def several(
    asked: Request, names: Sequence[str], most: int = 100, steps: str = "150"
) -> list[tuple[dict[str, str], float]]:
    found = []
    for name in names:
        text = (SLOW_START + SCRIPT).replace("10**6", steps).replace("MOST", str(most))
        found.append(({asked.target: text.replace("NAME", name).replace("WORKERS", "0")}, LIMIT_S))
    return found


def timed_ones(timer: Processes, asked: Request, every: list[tuple[dict[str, str], float]]) -> list[int]:
    found = list[int]()
    left = shared(timer, asked, every[0], every[1:], None, lambda at, plain, changed, s: found.append(at))
    assert not left.beside
    assert not left.failed
    return found


@pytest.mark.parametrize(("processors", "together"), [(16, True), (2, False)])
def test_with_many_cores_they_start_at_the_same_time(
    asked: Request, ready: Processes, processors: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: processors)
    assert timed_ones(ready, asked, several(asked, ["plain", "one", "two"])) == [0, 1]
    lines = log(asked)
    begun, first = lines.index("two begins"), lines.index("one step")
    # Up to their first slices they run together, and then one at a time.
    assert (begun < first) == together
    steps = [line for line in lines if line.endswith("step")]
    assert set(steps[len(steps) - steps[::-1].index("one step") :]) == {"plain step", "two step"}


def test_those_that_fail_beside_others_start_again_in_their_own_turns(
    asked: Request, ready: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    assert sorted(timed_ones(ready, asked, several(asked, ["plain", "one", "two"], most=2))) == [0, 1]
    assert len([line for line in log(asked) if line.endswith("begins")]) == 4  # one of them twice


def test_the_plain_one_starts_beside_others_once_its_memory_is_known(
    asked: Request, ready: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    every = several(asked, ["plain", "one"])
    for begins_first in (False, True):
        Path(asked.cwd, "log").unlink(missing_ok=True)
        assert timed_ones(ready, asked, every) == [0]
        lines = log(asked)
        assert (lines.index("one begins") < lines.index("plain step")) == begins_first
    assert ready.bytes > 1e6


@pytest.mark.parametrize(("most", "beside"), [(8, [2]), (2, [0, 0])])
def test_the_next_round_starts_beside_this_one(
    asked: Request, ready: Processes, most: int, beside: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``most``: processes that fit into the device's memory."""
    monkeypatch.setattr(timed, "cores", lambda: 16)
    ready.bytes, ready._most = 1, most
    ahead, found = ready.ahead, list[list[BackgroundTiming]]()

    def noted(count: int) -> list[BackgroundTiming]:
        found.append(ahead(count))
        return found[-1]

    monkeypatch.setattr(ready, "ahead", noted)
    (plain, _), (changed, _) = several(asked, ["plain", "one"], steps="10**6")
    pairs = Pairs(Candidate(("f",), "a fix", changed, plain))
    play(asked, [pairs], range(2), limits=Limits(first=2), timer=ready)
    assert len(pairs.plain) == len(pairs.changed) == 2
    assert all(one.slices for one in (*pairs.plain, *pairs.changed))
    assert [len(some) for some in found] == beside
    assert all(one.warm for some in found for one in some)


def test_what_fails_beside_an_earlier_round_costs_no_round(
    asked: Request, ready: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    ready.bytes = 1
    (plain, _), (changed, _) = several(asked, ["plain", "one"], most=2, steps="10**6")
    pairs = Pairs(Candidate(("f",), "a fix", changed, plain))
    play(asked, [pairs], range(2), limits=Limits(first=2), timer=ready)
    assert not pairs.failure
    assert len(pairs.plain) == len(pairs.changed) == 2


def test_without_room_for_two_the_second_is_not_started(
    asked: Request, ready: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpline.capture.room.SPARE", 10.0**9)
    assert compared(ready, asked, both(asked)) is None
    assert ready.slice_steps is None
    assert {line.split()[0] for line in log(asked)} == {"plain"}


@pytest.mark.parametrize("processors", [2, 16])
def test_cancel_ends_those_that_stand_still_too(
    asked: Request, ready: Processes, processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: processors)
    ready._steps, ready.bytes = 600, 1  # with many cores, both start at the same time
    cancelled = threading.Event()
    failed: list[Problem] = []

    def work() -> None:
        try:
            compared(ready, asked, both(asked), cancelled)
        except Problem as problem:
            failed.append(problem)

    worker = threading.Thread(target=work)
    worker.start()
    until(lambda: "changed step" in log(asked))
    cancelled.set()
    worker.join(LIMIT_S)
    assert not worker.is_alive()
    assert all(problem.status == 130 for problem in failed)
    assert not left(f"{tree.MARK}={os.getpid()}-")


def test_kill_9_leaves_no_process_that_stands_still(asked: Request) -> None:
    program = (
        "from warpline.measure.slices import shared\n"
        "from warpline.measure.timed import Processes\n"
        "from warpline.wire.run import Request\n"
        f"asked = Request(target={asked.target!r}, python={asked.python!r}, warmup=2)\n"
        "processes = Processes()\n"
        "processes._timed, processes._steps = True, 600\n"
        f"plain, *changed = {both(asked)!r}\n"
        "shared(processes, asked, plain, changed, None, print)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program], env=environment(), stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until(lambda: "changed step" in log(asked) or server.poll() is not None)
        assert server.poll() is None, "it ended before its scripts took turns"
        assert left(f"{tree.MARK}={server.pid}-")
    finally:
        server.kill()
        server.wait(LIMIT_S)
    until(lambda: not left(f"{tree.MARK}={server.pid}-"))


def left(mark: str) -> list[int]:
    """Processes with ``mark`` at the beginning of a variable of their environment."""
    found = []
    for entry in tree.processes():
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(mark.encode()) for word in words):
            found.append(int(entry.name))
    return found


def until(wanted: object) -> None:
    assert callable(wanted)
    late = time.monotonic() + LIMIT_S
    while not wanted():
        assert time.monotonic() < late
        time.sleep(0.05)
