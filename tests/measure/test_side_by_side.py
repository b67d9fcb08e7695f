"""Processes that are started together: each is timed while the others wait."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S
from warpline.measure import timed
from warpline.measure.background import BackgroundTiming
from warpline.measure.timed import Processes
from warpline.model.problem import Problem
from warpline.wire.run import Request

SCRIPT = """\
import os, pathlib, time, torch
log = pathlib.Path(__file__).with_name("log")
def note(word):
    with log.open("a") as file:
        file.write(word + "\\n")
note("begin NAME")
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
try:
    for step in range(10**6):
        weight.sum().backward()
        optimizer.step()
finally:
    note("end NAME")
"""


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    (tmp_path / "train.py").write_text(SCRIPT)
    variables = {"OMP_NUM_THREADS": "1"}
    return Request(
        target=str(tmp_path / "train.py"),
        cwd=str(tmp_path),
        python=sys.executable,
        environment=variables,
        warmup=2,
    )


def overlay(asked: Request, name: str) -> dict[str, str]:
    return {asked.target: SCRIPT.replace("NAME", name)}


def test_no_two_run_at_a_time(asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    processes = Processes(step_ms=100.0)
    overlays = [overlay(asked, name) for name in ("first", "one", "two")]
    with processes.side_by_side(asked, [(each, LIMIT_S) for each in overlays]):
        found = [processes(asked, each, LIMIT_S) for each in overlays]
    assert all(one.step_ms > 0 for one in found)
    log = Path(asked.cwd, "log").read_text().split("\n")
    assert log == ["begin first", "end first", "begin one", "end one", "begin two", "end two", ""]


def test_one_that_fails_costs_only_itself(asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    processes = Processes(step_ms=100.0)
    memory = {asked.target: "import torch\nraise torch.OutOfMemoryError('CUDA out of memory')\n"}
    overlays = [overlay(asked, "one"), memory, overlay(asked, "two")]
    with processes.side_by_side(asked, [(each, LIMIT_S) for each in overlays]):
        processes(asked, overlays[0], LIMIT_S)
        with pytest.raises(Problem, match="OutOfMemoryError: CUDA out of memory"):
            processes(asked, memory, LIMIT_S)
        assert processes(asked, overlays[2], LIMIT_S).step_ms > 0


def test_those_whose_turn_never_comes_are_ended(asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    processes = Processes(step_ms=100.0)
    processes(asked, overlay(asked, "first"), LIMIT_S)
    with processes.side_by_side(asked, [(overlay(asked, name), LIMIT_S) for name in "ab"]):
        pass
    assert Path(asked.cwd, "log").read_text().split() == ["begin", "first", "end", "first"]


@pytest.mark.parametrize("steps", [3, 8])
def test_a_script_with_few_steps_is_started_again_in_its_own_turn(
    asked: Request, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word that it waited for has been read: a second one never comes."""
    monkeypatch.setattr(timed, "cores", lambda: 16)
    processes = Processes(step_ms=1.0)
    few = [
        {path: text.replace("10**6", str(steps)) for path, text in overlay(asked, n).items()} for n in "ab"
    ]
    with processes.side_by_side(asked, [(each, LIMIT_S) for each in few]):
        found = [processes(asked, each, LIMIT_S) for each in few]
    assert all(one.step_ms > 0 for one in found)


def test_ranks_are_not_held_since_there_is_one_word_for_all_of_them(
    asked: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed, "cores", lambda: 16)
    processes = Processes(step_ms=1.0)
    ranks = replace(asked, launcher=("torchrun",))
    with processes.side_by_side(ranks, [(overlay(asked, name), LIMIT_S) for name in "ab"]):
        assert not processes._held


def test_who_waits_for_a_turn_that_never_comes_says_so(asked: Request) -> None:
    with BackgroundTiming(
        replace(asked, timeout_s=LIMIT_S), overlay(asked, "a"), 4, None, patience_s=1.0
    ) as held:
        held.ready()
        with pytest.raises(Problem, match="for its turn"):
            held._timing.result(LIMIT_S)
