"""Standard input that several runs read. No process is started: the runs are reads in this one."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from warpline.capture import replayed
from warpline.capture.replayed import Input

Pipe = tuple[IO[bytes], IO[bytes]]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """Its two ends."""
    read, write = os.pipe()
    with os.fdopen(read, "rb", 0) as out, os.fdopen(write, "wb", 0) as into:
        yield out, into


def descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def everything(descriptor: int | None) -> bytes:
    assert descriptor is not None
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def test_each_run_reads_all_that_came_through_the_pipe(pipe: Pipe) -> None:
    read, write = pipe
    write.write(b"first\nsecond\n")
    given = Input(read.fileno())
    with given.run() as descriptor:
        assert descriptor is not None
        assert os.read(descriptor, 6) == b"first\n"
    write.write(b"third\n")
    write.close()
    for _ in range(2):
        with given.run() as descriptor:
            assert everything(descriptor) == b"first\nsecond\nthird\n"
    assert given.again
    given.close()


def test_no_more_is_taken_from_the_pipe_than_the_run_reads(pipe: Pipe) -> None:
    """A producer that writes for ever is held up, as by any reader that is slow."""
    read, write = pipe
    os.set_blocking(write.fileno(), False)
    given = Input(read.fileno())
    taken = 0
    with given.run() as descriptor:
        assert descriptor is not None
        write.write(b"x")
        assert os.read(descriptor, 1) == b"x", "it copies"
        stuck = 0
        while taken < 4_000_000 and stuck < 20:  # a fifth of a second in which it takes nothing
            more = write.write(b"x" * 4096) or 0
            taken, stuck = taken + more, 0 if more else stuck + 1
            if not more:
                time.sleep(0.01)
    assert taken < 1_000_000
    given.close()


def test_what_is_too_much_is_not_kept(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = pipe
    monkeypatch.setattr(replayed, "MOST_BYTES", 5)
    write.write(b"first\nsecond\n")
    write.close()
    given = Input(read.fileno())
    with given.run() as descriptor:
        assert everything(descriptor) == b"first\nsecond\n"
    assert not given.again
    with given.run() as descriptor:
        assert everything(descriptor) == b""
    given.close()


def test_without_room_for_a_copy_a_run_reads_the_pipe_itself(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(buffering: int) -> None:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    given = Input(pipe[0].fileno())
    with given.run() as descriptor:
        assert descriptor == pipe[0].fileno()
    assert not given.again
    given.close()


def test_a_run_that_reads_nothing_ends(pipe: Pipe) -> None:
    """Neither the pipe's producer nor a full pipe of ours holds it up, and no thread or descriptor stays."""
    read, _ = pipe
    before, threads = descriptors(), threading.active_count()
    given = Input(read.fileno())
    for _ in range(3):
        with given.run():
            pass
    given.close()
    # Those of other tests may go meanwhile.
    assert descriptors() <= before
    assert threading.active_count() <= threads


def test_a_file_is_read_from_where_it_stood(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"left out\nsaid\n")
    with (tmp_path / "words").open("rb", buffering=0) as words:
        words.seek(9)
        given = Input(words.fileno())
        for _ in range(2):
            with given.run() as descriptor:
                assert everything(descriptor) == b"said\n"
        given.close()


def test_an_empty_input_is_none() -> None:
    with Input(None).run() as descriptor:
        assert descriptor is None


def test_nothing_is_taken_from_the_pipe_for_a_script_that_does_not_read(pipe: Pipe, tmp_path: Path) -> None:
    read, write = pipe
    write.write(b"next.py\n")
    given = Input(read.fileno(), tmp_path)
    with given.run() as descriptor:
        assert descriptor == read.fileno()
    assert os.read(read.fileno(), 100) == b"next.py\n"
    assert not given.again


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("import sys\nfor line in sys.stdin: pass", True),
        ("name = input ('name? ')", True),
        ("data = open(0, 'rb').read()", True),
        ("parser.add_argument('file', type=argparse.FileType())", True),
        ("raw_input = x; forward(input_ids=x); open(path); inputs(3)", False),
    ],
)
def test_whether_a_script_may_read_its_input(text: str, reads: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import beside")
    (tmp_path / "beside.py").write_text(text)
    assert replayed.may_read(tmp_path) is reads
