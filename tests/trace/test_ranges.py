"""A trace that several processes read comes out as from one; where anything in it is odd, one reads it."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.trace.test_pieces import same
from warpline import trace
from warpline.trace import decode, ranges, readers, rows
from warpline.trace.columns import Trace
from warpline.trace.decode import Chrome, Part, Unclean
from warpline.trace.events import Tables
from warpline.trace.readers import Reader

SMALL = 40_000  # bytes of a part


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Path]) -> Path:
    return recorded("bert_inference")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "PIECE", 4001)
    monkeypatch.setattr(ranges, "PART", SMALL)
    monkeypatch.setattr(ranges, "SMALLEST", SMALL)


@pytest.fixture(autouse=True)
def no_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """With it, threads read (``test_rows.py``)."""
    monkeypatch.setattr(rows, "compiled", lambda: None)


class Here(Reader):
    """As the process would answer, in this one."""

    def __init__(self) -> None:
        self.answers: list[io.BytesIO] = []
        self.ended = False

    def ask(self, path: Path, part: Part) -> None:
        self.answers.append(io.BytesIO())
        if not self.ended:
            readers.serve(io.BytesIO(readers.asked(path, part)), self.answers[-1])
        self.ended = not self.answers[-1].tell()
        self.answers[-1].seek(0)

    def answer(self) -> tuple[Tables, Chrome | None]:
        return readers.answered(self.answers.pop(0))

    def kill(self) -> None:
        self.ended = True

    end = kill


def together(path: Path, children: int = 3) -> tuple[Tables, Chrome]:
    """What processes would answer, without any. Raises Unclean."""
    parts = ranges.split(path)
    assert len(parts) > 3
    return ranges.merged(Tables(), ranges.read(path, parts, [Here() for _ in range(children)]))


def read(run: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    with monkeypatch.context() as patched:  # what it is compared with is read by one process
        patched.setattr(ranges, "together", lambda path, *_: together(path))
        return trace.read(run)


def copy(run: Path, data: bytes, folder: Path) -> Path:
    shutil.copytree(run, folder / "run")
    (folder / "run" / "trace.json.gz").unlink(missing_ok=True)
    (folder / "run" / "trace.json").write_bytes(data)
    return folder / "run"


@pytest.mark.usefixtures("small_parts")
def test_parts_are_the_whole(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert same(read(run, monkeypatch), trace.read(run, 1))


@pytest.mark.usefixtures("small_parts")
def test_other_layouts(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = json.loads((run / "trace.json").read_bytes())
    for indent in (None, 1, 2):
        other = copy(run, json.dumps(content, indent=indent).encode(), tmp_path / str(indent))
        assert same(read(other, monkeypatch), trace.read(run, 1))


def cut(data: bytes) -> bytes:
    return data[: len(data) * 6 // 10]


def malformed(data: bytes) -> bytes:
    half = data.index(b"\n  },\n", len(data) // 2) + 6
    return data[:half] + b'  {\n    "ph": "X", "ts": "never"\n  },\n' + data[half:]


def two_lists(data: bytes) -> bytes:
    """The list of events ends in the middle, and another one begins."""
    half = data.index(b"\n  },\n", len(data) // 2) + 4
    return data[:half] + b'\n  ],\n  "other": [\n' + data[half + 1 :]


def odd_base(data: bytes) -> bytes:
    """Nanoseconds that no int64 holds together with the time of an event."""
    return re.sub(rb'("baseTimeNanoseconds": )\d+', rb"\g<1>%d" % ((1 << 63) - 1), data)


def bare(data: bytes) -> bytes:
    return json.dumps(json.loads(data)["traceEvents"]).encode()


@pytest.mark.parametrize("spoil", [cut, malformed, two_lists, odd_base])
@pytest.mark.usefixtures("small_parts")
def test_what_is_not_clean_is_read_by_one_process(
    spoil: Callable[[bytes], bytes], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt = copy(run, spoil((run / "trace.json").read_bytes()), tmp_path)
    with pytest.raises(Unclean):
        together(spoilt / "trace.json")
    assert len(trace.read(spoilt, 1).host) > 10


@pytest.mark.usefixtures("small_parts")
def test_too_many_events_are_left_to_one_process(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many it used."""
    monkeypatch.setattr(decode, "MOST_EVENTS", 100)
    with pytest.raises(Unclean):
        together(run / "trace.json")


@pytest.mark.usefixtures("small_parts")
def test_what_something_else_prints_in_a_child_is_no_answer(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a sitecustomize of the environment may."""
    (tmp_path / "printed").write_bytes(b"Welcome to the cluster\n")
    with (tmp_path / "printed").open("rb") as printed:
        monkeypatch.setattr(Here, "answer", lambda _: readers.answered(printed))
        monkeypatch.setattr(ranges, "Reader", Here)
        assert ranges.together(run / "trace.json", 2) is None


@pytest.mark.usefixtures("small_parts")
def test_a_list_of_events_alone_has_no_parts(run: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.json").write_bytes(bare((run / "trace.json").read_bytes()))
    assert ranges.split(tmp_path / "bare.json") == []


@pytest.mark.process
@pytest.mark.usefixtures("small_parts")
def test_processes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = trace.read(run, 1)
    found = ranges.together(run / "trace.json", 2)
    assert found is not None
    monkeypatch.setattr(ranges, "together", lambda *_: found)
    assert same(trace.read(run), alone)


@pytest.mark.process
@pytest.mark.usefixtures("small_parts")
def test_a_process_that_ends_costs_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "may_fork", lambda: False)
    monkeypatch.setattr(readers, "_CHILD", "import os; os._exit(1)")
    assert ranges.together(run / "trace.json", 2) is None
    assert dataclasses.astuple(trace.read(run, 2).manifest) == dataclasses.astuple(
        trace.read(run, 1).manifest
    )


@pytest.mark.process
@pytest.mark.usefixtures("small_parts")
def test_a_process_that_hangs_is_ended(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "may_fork", lambda: False)
    monkeypatch.setattr(readers, "_CHILD", "import time; time.sleep(300)")
    monkeypatch.setattr(ranges, "LIMIT_S", 0.2)
    began = time.monotonic()
    assert ranges.together(run / "trace.json", 2) is None
    assert time.monotonic() - began < 100


FORKING = """\
import sys
from pathlib import Path
from warpline.trace import decode, ranges, readers, rows
decode.PIECE, ranges.PART, ranges.SMALLEST = 4001, 40_000, 40_000
path = Path(sys.argv[1])
rows.compiled, rows.installed, ranges.cores = lambda: None, lambda: False, lambda: 2
with ranges.Pool() as pool:
    assert pool.begin(path)
    processes = [reader.process for reader in pool.readers]
    assert {type(process) for process in processes} == {readers.Forked}
    counts = []
    for first in (True, False):
        tables, rest = pool.begun() if first else ranges.together(path, 2, pool)
        counts.append([sum(map(len, tables.of.values())), rest.base_ns])
    assert [reader.process for reader in pool.readers] == processes, "they read the next trace, too"
    broken = path.with_name("broken.json")
    data = path.read_bytes()
    broken.write_bytes(data[: len(data) * 6 // 10])
    assert ranges.together(broken, 2, pool) is None
    assert pool.readers == []
    again, _ = ranges.together(path, 2, pool)
    last = pool.readers[0].process
assert {process.poll() for process in processes} <= {0, -9}
assert last.poll() == -9
print(*counts, sum(map(len, again.of.values())), sep="\\n")
"""


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere another process is started")
@pytest.mark.usefixtures("small_parts")
def test_copies_of_a_process_without_threads(run: Path, tmp_path: Path) -> None:
    shutil.copy(run / "trace.json", tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING, str(tmp_path / "trace.json")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second, again = done.stdout.splitlines()
    tables, rest = together(run / "trace.json")
    count = sum(map(len, tables.of.values()))
    assert first == second == str([count, rest.base_ns])
    assert int(again) == count


def test_a_process_with_threads_or_torch_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may hold a lock, which nobody would release in the copy."""
    monkeypatch.setattr(readers.threading, "active_count", lambda: 1)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert readers.may_fork() == sys.platform.startswith("linux")
    with monkeypatch.context() as patched:
        patched.setattr(readers.threading, "active_count", lambda: 2)
        assert not readers.may_fork()
    monkeypatch.setitem(sys.modules, "torch", readers)
    assert not readers.may_fork()


@pytest.mark.timeout(30)
def test_parts_that_cannot_be_read_keep_no_thread_waiting(tmp_path: Path) -> None:
    """Each thread has taken what it reads with, and needs it for the next part as well."""
    event = b'{"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 1, "dur": 2}'
    whole, torn = b",".join(200_000 * [event]), b'{"ph": "X", "ts": nothing}'
    path = tmp_path / "trace.json"
    path.write_bytes(whole + 64 * torn)
    ends = [len(whole) + at * len(torn) for at in range(65)]
    parts = [Part(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    with pytest.raises(Unclean):
        list(ranges.in_threads(path, parts, 2))


def test_threads_take_brief_turns() -> None:
    usual = sys.getswitchinterval()
    with ranges.brief_turns():
        assert sys.getswitchinterval() < usual / 10
        with pytest.raises(KeyError), ranges.brief_turns():
            raise KeyError
        assert sys.getswitchinterval() < usual / 10
    assert sys.getswitchinterval() == usual
