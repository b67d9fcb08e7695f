"""What is run once more is run as it was profiled, except for what the command line says."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from warpline.commands import target
from warpline.wire.loops import Loop
from warpline.wire.run import Request


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    target.configure(parser)
    return parser.parse_args(words)


BEFORE = Request(
    target="pkg.train",
    module=True,
    argv=("--epochs", "1"),
    cwd="/work",
    python="/other/python",
    launcher=("torchrun", "--nproc-per-node", "2"),
    environment={"SEED": "1"},
    whole_run=True,
    loop=Loop("/work/sim.py", 18, "", "for turn in range(200)"),
    loop_found=True,
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()


def test_what_is_left_out_is_as_it_was() -> None:
    found = target.again(asked("train.py"), BEFORE)
    assert (found.target, found.module, found.argv) == ("pkg.train", True, ("--epochs", "1"))
    assert (found.python, found.launcher, found.cwd) == (BEFORE.python, BEFORE.launcher, "/work")
    assert found.environment == {"SEED": "1"}
    assert not found.whole_run, "that was asked of the profile"


def test_what_is_said_is_done() -> None:
    words = ("--python", "/my/python", "--launcher", "torchrun", "train.py", "--epochs", "3")
    found = target.again(asked(*words), BEFORE)
    assert (found.argv, found.python, found.launcher) == (("--epochs", "3"), "/my/python", ("torchrun",))


def test_a_trace_from_elsewhere_says_nothing(tmp_path: Path) -> None:
    assert target.again(asked("train.py"), Request()).target == str(tmp_path / "train.py")


def test_its_steps_are_turns_of_the_same_loop() -> None:
    """Else the script without steps is timed as a whole: 40 s where a turn took 0.14."""
    found = target.again(asked("train.py"), BEFORE)
    assert (found.loop, found.loop_found) == (BEFORE.loop, True)
