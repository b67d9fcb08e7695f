"""The sampler of our own: frames read from memory, on the interpreter that runs the tests."""

from __future__ import annotations

import copy
import ctypes
import itertools
import math
import mmap
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.sampler import child, layout, snapshots
from warpline.capture.runner.sampler.frames import Frames, LineTable, rare
from warpline.capture.runner.sampler.kept import KeptSamples

HERE = str(Path(__file__).resolve())
NESTED = {at: [{"a": [at, {"b": (at, [at])}]}] for at in range(3)}
SECONDS = 1.5
FEW = 100


@pytest.fixture
def user_files() -> UserFiles:
    return UserFiles([str(Path(HERE).parent)], [])


def line_of(text: str) -> int:
    """Of this file."""
    lines = Path(HERE).read_text(encoding="utf-8").splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.strip() == text)


def alternate(seconds: float) -> dict[str, float]:
    """Calls deep into a library and plain work in turn; the seconds of each by this clock."""
    took, until = {"library": 0.0, "plain": 0.0, "generated": 0.0}, time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        copy.deepcopy(NESTED)
        middle = time.perf_counter()
        sum(range(3000))
        later = time.perf_counter()
        sum(number * number for number in range(500))
        took["library"] += middle - begin
        took["plain"] += later - middle
        took["generated"] += time.perf_counter() - later
    return took


def codes_of(function: Any) -> list[CodeType]:
    code = function.__code__
    return [code, *(inner for inner in code.co_consts if isinstance(inner, CodeType))]


def test_shares_are_those_of_a_clock(user_files: UserFiles) -> None:
    """Also of a line that calls into libraries, whose frames come and go while they are read."""
    sampler = Frames()
    sampler.go()
    took = alternate(SECONDS)
    sampler.stop()
    found = sampler.found(user_files, codes_of(alternate))
    total = found["total"]
    assert total > FEW
    counts = {line: count for file, line, count in found["lines"] if file == HERE}
    lines = {
        "library": "copy.deepcopy(NESTED)",
        "plain": "sum(range(3000))",
        "generated": "sum(number * number for number in range(500))",
    }
    for name, text in lines.items():
        truth = took[name] / sum(took.values())
        share = counts.get(line_of(text), 0) / total
        # Five standard deviations of a count, and what the reads of the clock itself take.
        assert abs(share - truth) < 0.02 + 5 * math.sqrt(truth * (1 - truth) / total), name


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_each_step_s_thread_is_sampled(user_files: UserFiles) -> None:
    """The first thread only waits for them; a third one is at a line of its own all the time."""
    found: list[Frames] = []
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    in_a_thread(lambda: found.append(Frames(all_threads=True)))
    (sampler,) = found
    took: Counter[str] = Counter()
    sampler.go()
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        in_a_thread(lambda: [took.update(alternate(0.02)), sampler.made_here()])
    sampler.stop()
    over.set()
    seen = sampler.found(user_files, codes_of(alternate))
    counts = {line: count for _, line, count in seen["lines"]}
    assert sum(counts.values()) > FEW
    library, plain = (counts.get(line_of(text), 0) for text in ("copy.deepcopy(NESTED)", "sum(range(3000))"))
    truth = took["library"] / (took["library"] + took["plain"])
    assert library / (library + plain) == pytest.approx(truth, abs=0.1)


@pytest.mark.parametrize(
    ("lengths", "left_out"),
    [
        ([5] * 60, 0),
        ([5] * 60 + [90], 1),  # a collection of all garbage
        ([5] * 60 + [90] * 4, 0),  # four of them say how often it happens
        ([5] * 600 + [12] * 9 + [300], 1),  # and a busy machine
        ([5] * 20 + [90], 0),
        ([], 0),
    ],
)
def test_a_few_long_steps_are_left_out(lengths: list[int], left_out: int) -> None:
    steps = list(itertools.accumulate(lengths, initial=1000))
    found = rare(steps)
    assert len(found) == left_out
    assert all(end - begin >= 90 for begin, end in found)


def test_steps_of_another_class_do_not_hide_a_long_one() -> None:
    steps = list(itertools.accumulate([*[5] * 60, 90, *[5, 80] * 4], initial=1000))
    others = [(begin, end) for begin, end in itertools.pairwise(steps) if end - begin == 80]
    assert rare(steps) == []
    assert [end - begin for begin, end in rare(steps, others)] == [90]


def test_a_generator_that_is_suspended_is_not_where_the_thread_is(user_files: UserFiles) -> None:
    def numbers() -> Any:
        yield 1
        yield 2

    def waits() -> None:
        waiting = numbers()
        next(waiting)
        time.sleep(0.2)
        next(waiting)

    codes = [numbers.__code__, waits.__code__]
    sampler = Frames()
    sampler.go()
    waits()
    sampler.stop()
    lines = {line: count for _, line, count in sampler.found(user_files, codes)["lines"]}
    assert lines.get(line_of("yield 1"), 0) <= 0.05 * lines[line_of("time.sleep(0.2)")]


def test_the_layout_holds_in_other_frames() -> None:
    found = layout.of_this_thread()
    assert found == layout.of_this_thread()
    assert all(layout._holds(found) for _ in range(3))


def test_a_layout_that_is_wrong_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = layout.Layout(layout.of_this_thread().thread, (0,), 0, 8, 16, 200)
    monkeypatch.setattr(layout, "_outer", lambda: wrong)
    with pytest.raises(OSError, match="were not found"):
        layout.of_this_thread()


def test_an_address_without_memory_has_no_word() -> None:

    memory = snapshots.Memory(os.getpid())
    assert memory.word(8) is None
    assert memory.word(1 << 70) is None
    memory.look()  # with nothing to look at


def test_pages_that_are_gone_cost_only_themselves() -> None:

    memory = snapshots.Memory(os.getpid())
    stays, goes = mmap.mmap(-1, snapshots.PAGE), mmap.mmap(-1, snapshots.PAGE)
    stays[:8], goes[:8] = (7).to_bytes(8, "little"), (9).to_bytes(8, "little")
    there, gone = (ctypes.addressof(ctypes.c_char.from_buffer(one)) for one in (stays, goes))
    assert (memory.word(gone), memory.word(there)) == (9, 7)
    goes.close()
    stays[:8] = (8).to_bytes(8, "little")
    memory.look()
    assert memory.word(there) == 8
    assert memory.word(gone) is None


def test_more_pages_than_fit() -> None:

    memory = snapshots.Memory(os.getpid())
    many = snapshots.MOST_PAGES + 5
    block = mmap.mmap(-1, many * snapshots.PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(block))
    for at in range(many):
        block[at * snapshots.PAGE] = at
    for _ in range(2):
        assert [memory.word(begin + at * snapshots.PAGE) for at in range(many)] == list(range(many))
        memory.look()


def test_a_child_that_says_nothing_is_ended() -> None:
    class Silent(child.Child):
        def __init__(self) -> None:
            super().__init__([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
            self.end_by = child.signal.SIGINT
            self.begin(b"", b"ready", 0.5)

    begin = time.monotonic()
    with pytest.raises(OSError, match="did not start in time"):
        Silent()
    assert time.monotonic() - begin < 30


def test_memory_without_frames_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", snapshots.__file__],
        input=b'{"process": 1, "layout": {"thread": 8, "entry": [0], "code": 0, "previous": 8,'
        b' "instruction": 16}, "rate": 1000, "longest_s": 1}\n',
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == b"its frames cannot be read\n"


def test_lines_of_instructions() -> None:
    code = alternate.__code__
    table = LineTable(code)
    for begin, _, line in code.co_lines():
        if line not in (None, code.co_firstlineno):
            assert table.at(begin) == line


def decorated(function: Any) -> Any:
    return function


@decorated
def begins(
    times: int,
) -> Any:
    kept = [times for _ in range(times)]
    yield kept
    yield lambda: kept


def test_a_function_that_begins_is_at_its_first_line() -> None:
    """Garbage is collected there, and a ``def`` is no line that runs."""
    first = line_of("kept = [times for _ in range(times)]")
    assert {LineTable(begins.__code__).at(at) for at in (-2, 0)} == {first}
    one_line = (lambda: FEW).__code__
    assert LineTable(one_line).at(0) == one_line.co_firstlineno


SHORT_TURNS = """
import ctypes, os, runpy, sys
room = runpy.run_path(sys.argv[1], run_name="sampler")
os.nice(3)
room["ask_for_short_turns"]()
told = room["Scheduling"](size=56)
number = {"x86_64": 315, "aarch64": 275}[os.uname().machine]
ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, ctypes.byref(told), ctypes.sizeof(told), 0)
cores = room["Cores"](os.getpid(), os.getpid())
allowed = os.sched_getaffinity(0)
cores.leave()
left = os.sched_getaffinity(0)
print(told.runtime, told.nice - os.nice(0), len(allowed) - len(left), cores.last in left)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other schedulers")
def test_the_sampler_does_not_wait_for_the_scripts_core() -> None:
    """On the core of a script that sleeps now and then it would see it asleep whenever it looks."""
    done = subprocess.run(
        [sys.executable, "-c", SHORT_TURNS, snapshots.__file__],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    turn_ns, changed, left, still = done.stdout.split()
    assert changed == "0", "the script's priority is kept: without it the sampler waits for a core"
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 12):
        assert int(turn_ns) == snapshots.SHORTEST_TURN_NS
    if len(os.sched_getaffinity(0)) > 1:
        assert (left, still) == ("1", "False")


def test_samples_of_a_thread_that_waits_for_others_are_not_used() -> None:
    """An executor's: what the main thread does between its steps would be nothing."""

    class Seen:
        thread = os.getpid() + 1
        note = ""
        all_threads = False

        def __init__(self, counted: int) -> None:
            self.counted = counted

        def found(self, *_: Any) -> dict[str, Any]:
            return {"total": 100, "lines": [(HERE, 1, self.counted)]}

    kept = KeptSamples()
    for counted, used in ((99, True), (60, False)):
        kept.clear()
        kept.sampler = Seen(counted)  # type: ignore[assignment]
        assert (kept.facts(UserFiles([], []), []) is not None) is used
        assert bool(kept.notes()) is not used
    Seen.all_threads = True  # the others are in the samples
    assert kept.facts(UserFiles([], []), []) is not None
    Seen.all_threads = False
    Seen.thread = os.getpid()  # the main thread has nobody to wait for
    assert kept.facts(UserFiles([], []), []) is not None


@pytest.mark.parametrize(("torn", "looks"), [(0, 1), (2, 3), (99, snapshots.TRIES)])
def test_a_sample_in_the_middle_of_a_call_is_taken_again(torn: int, looks: int) -> None:
    """At once, and not for ever."""

    class Memory:
        looks = 0

        def look(self) -> None:
            self.looks += 1

    frames: Any = object.__new__(snapshots.Frames)
    frames.memory = Memory()
    frames.stack = lambda: None if frames.memory.looks <= torn else (1, 2)
    stack, _ = frames.now()
    assert stack == (None if torn == 99 else (1, 2))
    assert frames.memory.looks == looks
