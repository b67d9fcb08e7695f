"""What the runner writes to the pipe is what the server hears."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpline.capture.pipe import hear
from warpline.capture.runner.pipe import Pipe
from warpline.wire import stages
from warpline.wire.loops import Loop, Turning
from warpline.wire.messages import (
    EVENTS,
    Compiling,
    Ended,
    Failed,
    Looked,
    Message,
    Pausing,
    Progress,
    Ready,
    Replaced,
)

LOOP = Loop("/sim.py", 3, "run", "while n < 4", 1)
EACH = [
    Progress(stages.WARMUP, 2, 5, "warm-up 2/5"),
    Progress(stages.WAITING, 0, None, "waiting for the first step"),
    Compiling(True),
    Failed("python has no torch", 2),
    Pausing(25_000_000),
    Ready(4),
    Replaced("/bin/true"),
    Looked((Turning(LOOP, 60, 20, 1200, alike=False),), inside=(Turning(LOOP, 600, 2, 1190),), at_end=True),
    Ended(nested=(LOOP,)),
    Ended(steps=7, boundaries=6, held=1, error="ValueError", message="a “word”", whole_ns=1 << 40),
]


def test_every_kind_is_tried() -> None:
    assert {type(one) for one in EACH} == set(EVENTS.values())


@pytest.mark.parametrize("message", EACH, ids=lambda message: type(message).__name__)
def test_what_is_sent_is_heard(tmp_path: Path, message: Message) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR)
    pipe = Pipe(str(tmp_path / "pipe"), 3)
    pipe.send(message)
    heard = hear(os.read(reader, 65536))
    pipe.close()
    os.close(reader)
    assert heard is not None
    assert (heard.rank, heard.message) == (3, message)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"event": "progress", "rank": 0}',
        b'{"event": "tea", "rank": 0}',
        b'{"event": "ready"}',
    ],
)
def test_a_line_that_is_no_message_is_left_out(line: bytes) -> None:
    assert hear(line) is None
