"""Two profiles on one GPU measure one after the other."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.capture.runner.device import kinds
from warpline.capture.runner.device.alone import Alone
from warpline.capture.runner.pipe import Pipe
from warpline.capture.runner.windows.stages import SHARED, Waiting
from warpline.wire.control import Purpose
from warpline.wire.stages import RESTING, WARMUP

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract names of sockets")

SERVER = Path(__file__).parents[2] / "server"
OTHER = """
import sys
from warpline.capture.runner.device.alone import Alone
alone = Alone()
alone.take(sys.argv[1])
print("held", flush=True)
sys.stdin.readline()
alone.let_go()
print("free", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def gpu() -> str:
    return f"GPU-{uuid.uuid4()}"


@pytest.fixture
def other(gpu: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the GPU."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, gpu],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait(10)


def waited(alone: Alone, gpu: str | None, most_s: float) -> float:
    begin = time.monotonic()
    alone.take(gpu, most_s)
    return time.monotonic() - begin


def test_waits_until_the_other_lets_go(gpu: str, other: subprocess.Popen[str]) -> None:
    told: list[str] = []
    mine = Alone()

    def let_go() -> None:
        told.append("waiting")
        assert other.stdin is not None
        other.stdin.write("\n")
        other.stdin.flush()

    mine.take(gpu, 30, let_go)
    assert told == ["waiting"]
    assert waited(Alone(), gpu, 0.2) >= 0.2, "this process holds it now"
    mine.let_go()
    assert waited(Alone(), gpu, 30) < 30


def test_a_process_that_died_holds_nothing(gpu: str, other: subprocess.Popen[str]) -> None:
    other.kill()
    other.wait(10)
    told: list[str] = []
    Alone().take(gpu, 30, lambda: told.append("waiting"))
    assert told == []


def test_goes_on_after_the_limit(gpu: str, other: subprocess.Popen[str]) -> None:
    assert 0.3 <= waited(Alone(), gpu, 0.3) < 20
    assert Alone().take(gpu, 0.0) is False
    assert Alone().take(None) is True


@pytest.mark.parametrize("name", ["__init__", "bind"])
def test_a_system_that_forbids_it_is_not_waited_for(
    gpu: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def forbidden(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(socket, "socket", type("Forbidden", (socket.socket,), {name: forbidden}))
    assert Alone().take(gpu, 30, lambda: pytest.fail("it waits")) is True


class Kept(Pipe):
    """A pipe that keeps its messages."""

    def __init__(self) -> None:
        super().__init__("", 0)
        self.messages: list[Any] = []

    def send(self, message: Any) -> None:
        self.messages.append(message)


class Impatient(Alone):
    def take(self, identity: str | None, most_s: float = 0.2, on_wait: Any = None) -> bool:
        return super().take(identity, most_s, on_wait)


def test_after_a_wait_the_time_limit_counts_again_and_a_note_says_who_else_measures(
    gpu: str, monkeypatch: pytest.MonkeyPatch, other: subprocess.Popen[str]
) -> None:
    monkeypatch.setattr(kinds, "used", lambda torch: SimpleNamespace(identity=lambda: gpu))
    pipe, control = Kept(), SimpleNamespace(purpose=Purpose.PROFILE, world=1)
    session: Any = SimpleNamespace(
        alone=Impatient(), control=control, notes=[], pipe=pipe, torch=None, rested_ns=0
    )
    for _ in range(2):  # the second time after a restart
        Waiting(session)._wait_for_others()
    assert [one.stage for one in pipe.messages] == [RESTING, WARMUP] * 2
    assert session.notes == [SHARED]
    assert session.rested_ns > 0, "which the limit does not count"


def test_another_gpu_and_an_unknown_one_are_free(other: subprocess.Popen[str]) -> None:
    told: list[str] = []
    for identity in (f"GPU-{uuid.uuid4()}", None):
        Alone().take(identity, 30, lambda: told.append("waiting"))
    assert told == []


@pytest.mark.process
def test_a_forked_worker_does_not_keep_it(gpu: str) -> None:
    mine = Alone()
    mine.take(gpu)
    worker = os.fork()
    if worker == 0:
        mine.let_go()  # as ``Session.forget`` does
        time.sleep(30)
        os._exit(0)
    try:
        time.sleep(0.2)
        mine.let_go()
        assert waited(Alone(), gpu, 30) < 25
    finally:
        os.kill(worker, 9)
        os.waitpid(worker, 0)
