"""A run in which only the script's loops are watched, of a script that hands its code on and compiles."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.capture.launching import request, write
from warpline.capture.control import write_control
from warpline.capture.outcome import Outcome
from warpline.capture.process import Target
from warpline.capture.tries import Tries
from warpline.model.problem import Problem
from warpline.wire.control import Purpose, Windows
from warpline.wire.messages import Looked
from warpline.wire.run import Request

#: As cloudpickle does it: the function goes to another process by its code, without a file.
TEXT = """\
import marshal, subprocess, sys, torch
def total(n):
    s = 0
    for i in range(n):
        s += i
    while s > 10:
        s //= 2
    return [s + k for k in range(2)]
there = "import marshal, sys, types; code = marshal.load(sys.stdin.buffer); "
there += "print(types.FunctionType(code, {'__builtins__': __builtins__})(100))"
sent = marshal.dumps(total.__code__)
said = subprocess.run([sys.executable, "-S", "-c", there], input=sent, capture_output=True, check=True).stdout
fast = torch.compile(torch.nn.Linear(64, 64))
print(said.decode().strip(), type(fast).__name__, *fast._orig_mod.state_dict(), *fast.state_dict())
x = torch.randn(64, 64)
with torch.no_grad():
    for request in range(10**6):
        for _ in range(20):
            x = fast(x)
"""


@pytest.mark.process
def test_code_that_goes_elsewhere_and_a_compiled_module(tmp_path: Path) -> None:
    asked = request(write(tmp_path, TEXT))
    control = write_control(asked, tmp_path / "run", Purpose.LOOPS, windows=Windows(muted=True))
    with (
        (tmp_path / "output").open("wb") as output,
        Target(asked, control, stdin=None, output=output.fileno()) as target,
    ):
        outcome = target.follow(lambda progress: None, threading.Event(), lambda: None)
    printed = "[9, 10] OptimizedModule weight bias _orig_mod.weight _orig_mod.bias\n"
    assert (tmp_path / "output").read_text() == printed
    assert outcome.looked is not None
    assert [one.loop.header for one in outcome.looked.chosen] == ["for request in range(10 ** 6)"]


def looking() -> Tries:
    tries = Tries(Request(target="/sim.py"), "")
    tries.count = 1
    tries._look(tries.windows)
    assert tries.purpose is Purpose.LOOPS
    return tries


def test_a_run_that_only_looked_costs_nothing_when_it_fails() -> None:
    tries = looking()
    assert tries.forgives(Problem("sim.py made no step within 40 s (--timeout)", 1))
    tries.go_on(Outcome())
    assert tries.purpose is Purpose.PROFILE
    assert "sim.py made no step within 40 s" in tries.notes[-1]
    assert not tries.forgives(Problem("sim.py made no step within 40 s (--timeout)", 1)), "it was to measure"


@pytest.mark.parametrize("problem", [Problem("cancelled", 130), Problem("cannot write the run", 2)])
def test_what_the_next_run_would_meet_as_well_is_not_forgiven(problem: Problem) -> None:
    assert not looking().forgives(problem)


def test_without_a_loop_there_is_no_note_that_it_failed() -> None:
    tries = looking()
    tries.go_on(Outcome(looked=Looked()))
    assert not tries.notes
