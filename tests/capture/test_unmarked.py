"""Scripts that compute for long in loops and do nothing that could mark a step."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from tests.capture.launching import Captured, request, write
from warpline.capture import process
from warpline.capture.outcome import Outcome
from warpline.capture.tries import Tries
from warpline.wire.control import Purpose
from warpline.wire.messages import Ended
from warpline.wire.run import Request

GRID = """\
import time, torch
class Grid:
    def __init__(self):
        self.field, self.passed = torch.zeros(64, 64), 0
    def run(self, times):
        for _ in range(times):
            self.step()
    def step(self):
        if not self.passed:
            time.sleep(1.0)  # as if it compiled
        self.field += 0.1 * (1 - self.field)
        time.sleep(0.02)
        self.passed += 1
"""
SIMULATION = """\
import grid
one = grid.Grid()
for block in range(10**6):
    one.run(1000)
    print(one.passed)
"""


def test_a_loop_of_another_file_within_long_turns_of_a_script_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "SILENT_S", 3.0)
    monkeypatch.setattr(process, "AGAIN_S", 0.2)
    write(tmp_path, GRID, "grid.py")
    captured = Captured(request(write(tmp_path, SIMULATION), timeout_s=120.0), tmp_path)
    assert captured.manifest.step_source == "loop"
    assert "grid.py:6 (for _ in range(times))" in captured.manifest.notes[0]
    assert captured.lines()["grid.py", 11] >= 3


def test_what_is_to_be_run_next() -> None:
    tries = Tries(Request(target="/sim.py"), "")
    assert tries.windows.may_look
    unmarked = Outcome(ended=Ended(unmarked=True, clean=True, torch=True))
    tries.go_on(unmarked)
    assert tries.purpose is Purpose.LOOPS
    tries.go_on(Outcome())
    assert tries.purpose is Purpose.PROFILE, "no loop was found: its steps are waited for"
    assert not tries.windows.may_look


class Files(dict[str, str]):
    def __missing__(self, path: str) -> None:
        return None


class Watched:
    """A script whose innermost function is ``frame``'s, in a loop; ``trains``: its text calls backward()."""

    def __init__(self, made: tuple[str, ...] = (), trains: bool = False) -> None:
        from warpline.capture.runner.steps.nested import Nested
        from warpline.capture.runner.steps.unmarked import Unmarked

        self.made, self.trains, self.sites = made, trains, self
        text = Path(__file__).read_text(encoding="utf-8")
        nested = Nested(Files({__file__: __file__}), lambda path: text, "/torch")  # type: ignore[arg-type]
        self.unmarked = Unmarked(bytes, self, nested)  # type: ignore[arg-type]

    def has(self, kind: str) -> bool:
        return kind in self.made

    def trains_by_text(self) -> bool:
        return self.trains

    def seen(self, frame: FrameType) -> bool:
        return self.unmarked.found(frame)


def looping() -> FrameType:
    """Its frame is left inside the loop."""
    tensor = b"a tensor"
    for _ in range(1):
        return (tensor, sys._getframe())[1]
    raise AssertionError


class Holding:
    def __init__(self) -> None:
        self.tensor = b"a tensor"

    def looping(self) -> FrameType:
        for _ in range(1):
            return sys._getframe()
        raise AssertionError


def without_tensor() -> FrameType:
    for _ in range(1):
        return sys._getframe()
    raise AssertionError


def without_loop() -> FrameType:
    tensor = b"a tensor"
    return (tensor, sys._getframe())[1]


@pytest.mark.parametrize(
    ("watched", "frame", "found"),
    [
        (Watched(), looping(), True),
        (Watched(), Holding().looping(), True),
        (Watched(), without_tensor(), False),
        (Watched(), without_loop(), False),
        (Watched(("optimizer",)), looping(), False),
        (Watched(("loader",)), looping(), False),
        (Watched(("module",)), looping(), False),
        (Watched(trains=True), looping(), False),
    ],
    ids=["computes", "an attribute", "no tensor", "no loop", "optimizer", "loader", "model", "backward"],
)
def test_it_has_to_compute_and_to_have_nothing_that_makes_steps(
    watched: Watched, frame: FrameType, found: bool
) -> None:
    assert [watched.seen(frame) for _ in range(5)] == [False] * 4 + [found]
