"""Steps in threads, and threads that outlive the script."""

from __future__ import annotations

import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from tests.conftest import shortened
from warpline import attribution, trace
from warpline.capture import process
from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.tracing import Tracing, WatchedThreads
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.steps.beat import Cycle, Steps
from warpline.capture.runner.steps.datasets import Datasets
from warpline.capture.runner.steps.forwards import Forwards
from warpline.capture.runner.steps.numbers import FORGOTTEN

NO_CUDA = SimpleNamespace(is_initialized=lambda: False)
NO_PASS = SimpleNamespace(_current_graph_task_id=lambda: -1)
TRAIN = """\
import threading, time, torch
from torch import nn
from concurrent.futures import ThreadPoolExecutor
def train(steps=10**9):
    net = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = net(torch.randn(16, 64)).sum()
        loss.backward()
        optimizer.step()
    print("trained", flush=True)
"""
SERVER = """\
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import urllib.request
model = nn.Linear(64, 8)
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with torch.no_grad():
            body = str(model(torch.randn(4, 64)).sum()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
def ask():
    while True:
        urllib.request.urlopen("http://127.0.0.1:%d" % server.server_port, timeout=20).read()
threading.Thread(target=ask).start()
server.serve_forever()
"""
OURS = ("Traceback", "Stopped", "KeyboardInterrupt", "warpline", "External init")


@pytest.mark.parametrize(
    "text",
    [
        "with ThreadPoolExecutor(2) as pool:\n    pool.submit(train).result()\n",
        "threading.Thread(target=train, args=(40,)).start()\n",
        "both = [threading.Thread(target=train) for _ in range(2)]\n"
        "for one in both:\n    one.start()\nfor one in both:\n    one.join()\n",
    ],
    ids=["executor", "a short one, not joined", "two loops that never end"],
)
def test_a_training_loop_in_a_thread(tmp_path: Path, text: str) -> None:
    captured = Captured(request(write(tmp_path, TRAIN + text)), tmp_path)
    assert captured.manifest.step_source == "optimizer"
    assert len(captured.manifest.captured) >= 2
    lines = captured.lines()
    assert all(lines["train.py", line] >= 2 for line in (8, 9, 10))
    assert not [word for word in OURS if word in captured.output]


def test_loops_in_two_threads_that_end(tmp_path: Path) -> None:
    """How many steps are heard of one of them depends on how they take turns: no two runs make as many."""
    text = TRAIN + (
        "both = [threading.Thread(target=train, args=(60,)) for _ in range(2)]\n"
        "for one in both:\n    one.start()\nfor one in both:\n    one.join()\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.manifest.captured, "whatever it was that could be measured"
    assert captured.lines()["train.py", 9] >= 1
    assert not [word for word in OURS if word in captured.output]


@pytest.mark.parametrize("calls", ["model", "lambda seen: nn.Linear(64, 8)(seen)"], ids=["one", "anew"])
def test_a_thread_that_takes_the_place_of_another(
    calls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun before the other has ended, so it has a number of its own."""
    monkeypatch.setattr(process, "SILENT_S", 1000.0)  # heard at once, not when all sources are
    text = (  # without an optimizer, whose first step would be waited for
        f"import threading, time, torch\nfrom torch import nn\nmodel = nn.Linear(64, 8)\ncall = {calls}\n"
        "def infer(times, first=None):\n    if first is not None:\n        first.join()\n"
        "    for _ in range(times):\n        time.sleep(0.002)\n        call(torch.randn(16, 64))\n"
        "first = threading.Thread(target=infer, args=(60,))\nfirst.start()\n"
        "second = threading.Thread(target=infer, args=(10**9, first))\nsecond.start()\nsecond.join()\n"
    )
    captured = Captured(request(write(tmp_path, text), timeout_s=60.0), tmp_path)
    assert len(captured.manifest.captured) == 3
    assert captured.lines()["train.py", 10] >= 2
    assert not [word for word in OURS if word in captured.output]


def test_a_server_with_a_thread_for_each_request(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, TRAIN + SERVER)), tmp_path)
    assert captured.manifest.step_source == "forward"
    assert len(captured.manifest.captured) == 3
    assert captured.lines()["train.py", 18] >= 2
    assert not [word for word in OURS if word in captured.output]


def test_a_request_s_python_is_at_its_lines(tmp_path: Path) -> None:
    """Several clients ask at once: each request is a step, whose thread begins before others have ended."""
    text = SERVER.replace("            body = str(", "            time.sleep(0.01)\n            body = str(")
    asking = "threading.Thread(target=ask).start()"
    text = text.replace(asking, f"for _ in range(2):\n    {asking}")
    captured = Captured(request(write(tmp_path, TRAIN + text), steps=5), tmp_path)
    assert captured.manifest.step_source == "forward"
    assert not [note for note in captured.manifest.notes if "at the same time" in note]
    assert len(captured.manifest.captured) == 5, "steps that overlap are of one kind"
    assert len(captured.facts.step_threads) > 2
    profile = attribution.attribute(trace.read(captured.run))
    at = {line.line: line.step_ms for line in profile.lines}
    assert at[18] > 0.1 * profile.steps.step_ms
    assert sum(at.get(line, 0.0) for line in range(17, 24)) > 0.6 * profile.steps.step_ms
    assert profile.unattributed.step_ms < 0.1 * profile.steps.step_ms
    assert not [word for word in OURS if word in captured.output]


@pytest.mark.parametrize("asked", [30, 300])
def test_a_server_whose_last_request_is_in_a_window(asked: int, tmp_path: Path) -> None:
    """The thread of a request has ended by then, and the script ends while steps are recorded."""
    text = SERVER.replace("while True:", f"for _ in range({asked}):")
    text = text.replace("timeout=20).read()\n", "timeout=20).read()\n    server.shutdown()\n")
    captured = Captured(request(write(tmp_path, TRAIN + text), steps=1000), tmp_path)
    assert captured.manifest.captured, "by steps, or as a whole if it had too few for the windows"
    assert captured.lines()["train.py", 18] >= 1
    assert not [word for word in (*OURS, "Kineto") if word in captured.output]


def test_threads_of_a_pool_take_the_steps_in_turn(tmp_path: Path) -> None:
    """Each call of the optimizer is a step, whichever thread makes it."""
    text = TRAIN + (
        "net = nn.Linear(64, 8)\noptimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\n"
        "def step():\n    net(torch.randn(16, 64)).sum().backward()\n    optimizer.step()\n"
        "with ThreadPoolExecutor(4) as pool:\n    while True:\n        pool.submit(step).result()\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert len(captured.manifest.captured) == 3
    assert captured.lines()["train.py", 15] in (3, 4), (
        "in each step once; its threads begin to be recorded there"
    )
    assert not captured.manifest.notes
    assert not [word for word in OURS if word in captured.output]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_thread_for_each_step(python: str, tmp_path: Path) -> None:
    """All steps are at their lines, not only those of one of the threads."""
    text = TRAIN + (
        "net = nn.Linear(64, 8)\noptimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\n"
        "def step():\n    time.sleep(0.01)\n    net(torch.randn(16, 64)).sum().backward()\n"
        "    optimizer.step()\n"
        "while True:\n    one = threading.Thread(target=step)\n    one.start()\n    one.join()\n"
    )
    captured = Captured(request(write(tmp_path, text), python), tmp_path)
    profile = attribution.attribute(trace.read(captured.run))
    at = {line.line: line.step_ms for line in profile.lines}
    assert at[15] > 0.6 * profile.steps.step_ms
    assert profile.unattributed.step_ms < 0.1 * profile.steps.step_ms
    assert not [note for note in captured.manifest.notes if "set a trace function" in note]
    assert any(line.ops for line in profile.lines if line.line == 16)


def test_a_thread_that_never_ends_keeps_no_report(tmp_path: Path) -> None:
    text = TRAIN + (
        "def heartbeat():\n    while True:\n        time.sleep(0.1)\n"
        "threading.Thread(target=heartbeat, name='heart').start()\ntrain(12)\n"
    )
    begun = time.monotonic()
    environment = shortened(endings__IDLE_S=2)
    captured = Captured(request(write(tmp_path, text), environment=environment), tmp_path)
    assert time.monotonic() - begun < 120
    assert len(captured.manifest.captured) >= 1
    assert captured.lines()["train.py", 9] >= 1
    assert not [word for word in OURS if word in captured.output]


def test_an_optimizer_is_followed_to_another_thread() -> None:
    observers = SimpleNamespace(signals=SimpleNamespace(thread=-1, datasets=Datasets()))
    steps = Steps(lambda: True, observers, lambda: 0.0)  # type: ignore[arg-type]
    steps.thread = -1
    steps.cycles["optimizer"] = Cycle()
    steps.cycles["optimizer"].heard(5)
    assert not steps._follows("optimizer", 6), "another loop's"
    assert not steps._follows("backward", 5)
    steps.parallel = True  # a forward was heard of this thread before its optimizer
    assert not steps.moves
    assert steps._follows("optimizer", 5)
    assert steps.moves
    assert (steps.thread, observers.signals.thread, steps.note) == (threading.get_ident(), None, "")


def test_threads_that_end_one_after_the_other_are_one_loop() -> None:
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: True, observers, lambda: 0.0)  # type: ignore[arg-type]
    moves = []
    for _ in range(3):
        steps.thread = -1  # of no living thread
        assert steps._moved()
        moves.append(steps.moves)
    assert moves == [False, True, True], "one that warmed up, then a server's: a recording ends in another"


def test_where_each_step_has_a_thread_none_waits_for_another_to_end() -> None:
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: True, observers, lambda: 0.0)  # type: ignore[arg-type]
    steps.torch = SimpleNamespace(cuda=NO_CUDA, _C=NO_PASS)
    steps.chosen, steps.moves = "forward", True
    steps.cycles["forward"] = Cycle()
    steps.cycles["forward"].heard(5)
    made: list[int] = []
    steps.on_step = lambda: made.append(threading.get_ident())
    steps.thread, steps.owner = threading.main_thread().ident, threading.main_thread()
    one = threading.Thread(target=steps.tick)
    one.start()
    one.join()
    steps.tick()
    assert len(made) == 2
    assert (steps.note, observers.signals.thread) == ("", None)


def test_one_step_is_handled_at_a_time() -> None:
    """A window may begin in it, which takes long."""
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: True, observers, lambda: 0.0)  # type: ignore[arg-type]
    made: list[bool] = []

    def on_step() -> None:
        made.append(steps.inside)
        one = threading.Thread(target=steps._step)
        one.start()
        one.join()

    steps.on_step = on_step
    steps._step()
    assert (made, steps.inside) == ([True], False)


def test_records_are_forgotten_in_whole_pairs() -> None:
    """Another thread may be about to add the location of a time."""
    locations = Locations(UserFiles((), ()), QualifiedNames())
    records = locations.records()
    for forget, left in ((locations.forget_all_but_last, [3, 4, 5]), (locations.clear_records, [5])):
        records.pairs[:] = records.library[:] = array("q", [1, 2, 3, 4, 5])
        forget()
        assert records.pairs.tolist() == records.library.tolist() == left


def test_a_thread_with_the_number_of_one_that_has_ended_is_another() -> None:
    """Linux gives a thread that begins as another ends the same number."""
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: True, observers, lambda: 0.0)  # type: ignore[arg-type]
    steps.torch = SimpleNamespace(cuda=NO_CUDA, _C=NO_PASS)
    numbers = []

    def step() -> None:
        numbers.append(threading.get_ident())
        steps.tick()

    for _ in range(4):
        one = threading.Thread(target=step)
        one.start()
        one.join()
    assert len(set(numbers)) < 4, "this system gives every thread another number"
    assert (steps.successors, steps.moves) == (2, True), "from then on, steps of all threads count"


def test_the_beat_goes_on_in_another_thread() -> None:
    """One that has ended is replaced at once, one that is only silent after many signals of another's."""
    restarts: list[bool] = []
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: restarts.append(True) or True, observers, lambda: 0.0)  # type: ignore[arg-type]
    steps.thread = -1  # of no living thread
    assert steps._moved()
    assert not steps.note
    with_other = threading.Event()
    other = threading.Thread(target=with_other.wait, daemon=True)
    other.start()
    steps.thread, steps.owner, steps.elsewhere = other.ident, other, 0
    assert [steps._moved() for _ in range(FORGOTTEN)] == [False] * FORGOTTEN
    assert steps._moved()
    assert steps.thread == threading.get_ident()
    assert restarts == [True]
    assert "several threads" in steps.note
    with_other.set()


def test_an_optimizer_of_another_thread_does_not_change_the_choice() -> None:
    """Two threads that train in turn would otherwise begin the warm-up again for ever."""
    restarts: list[bool] = []
    observers = SimpleNamespace(signals=SimpleNamespace(thread=None, datasets=Datasets()))
    steps = Steps(lambda: restarts.append(True), observers, lambda: 0.0)  # type: ignore[arg-type]
    steps.torch = SimpleNamespace(_C=NO_PASS)
    with_other = threading.Event()
    other = threading.Thread(target=with_other.wait, daemon=True)
    other.start()
    steps.thread, steps.owner = other.ident, other
    steps.unknown()
    assert restarts == []
    with_other.set()
    steps._follow()
    steps.unknown()
    assert restarts == [True]


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_checkpointing_computes_again_is_no_forward(reentrant: bool) -> None:
    """With a GPU it runs on autograd's own thread, and was taken for steps of another thread."""
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint

    heard: list[int] = []
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    forwards = Forwards()
    forwards.install(torch, lambda _, key: heard.append(key))
    try:
        checkpoint(second, first(torch.ones(2, 4)), use_reentrant=reentrant).sum().backward()
    finally:
        forwards.remove()
    assert heard == [forwards.numbers.of(first), forwards.numbers.of(second)]


def in_a_thread(work: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is of all threads")
def test_threads_that_make_steps_are_not_traced_while_these_are_timed() -> None:
    """A trace function that does nothing makes plain Python four times slower."""
    watched = WatchedThreads()
    watched.start()
    try:
        assert in_a_thread(sys.gettrace) is not None
        assert in_a_thread(lambda: [watched.rest(moves=False), sys.gettrace()][1]) is None, "the driver"
        assert in_a_thread(sys.gettrace) is not None, "others are, as long as they make no steps"
        watched.rest(moves=True)
        assert in_a_thread(sys.gettrace) is None
        watched.go_on()
        assert in_a_thread(sys.gettrace) is not None
    finally:
        watched.stop()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring leaves out single lines")
def test_the_trace_function_rests_in_new_threads_too() -> None:
    tracing = Tracing(Locations(UserFiles((), ()), QualifiedNames()))

    def work() -> tuple[bool, bool, bool]:
        paused, off = tracing.pause(), sys.gettrace() is None
        tracing.resume()
        return paused, off, sys.gettrace() is not None

    tracing.start()
    try:
        assert in_a_thread(work) == (True, True, True)
    finally:
        tracing.stop()
