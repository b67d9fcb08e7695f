"""What is made of py-spy's answers, and of the steps that a process writes down."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from warpline.capture.attach import _counted, _refusal
from warpline.capture.runner.attached import step_code
from warpline.capture.stepping import Stepped, stepped, watcher

RAW = """\
thread (7): "MainThread";<module> (/w/train.py:9);step (/w/train.py:4);mm (/v/site-packages/t.py:1) 30
thread (7): "MainThread";<module> (/w/train.py:9) 10
thread (8): "Thread-1";run (/w/train.py:2) 99
"""


def test_the_innermost_line_of_the_users_counts() -> None:
    found = _counted(RAW, 5)
    assert found.total == 40
    assert found.lines == (("/w/train.py", 4, 30), ("/w/train.py", 9, 10))


def test_a_process_that_never_imported_threading_has_a_main_thread() -> None:
    unnamed = RAW.replace(': "MainThread"', "").replace(': "Thread-1"', "")
    assert _counted(unnamed, 7).total == 40
    assert _counted(unnamed, 5).total == 0, "neither of two is known to be it"
    assert _counted("".join(unnamed.splitlines(keepends=True)[:2]), 5).total == 40


def test_a_refusal_says_what_would_allow_it() -> None:
    assert "ptrace_scope" in _refusal(7, "Error: Permission Denied: Try again")
    other = _refusal(7, "Error: Failed to find python version from target process\n")
    assert other == "process 7 runs no Python that py-spy knows"
    assert _refusal(7, "Error: no python\nStack backtrace:\n 6: start\n").endswith("Error: no python")


def test_the_code_that_every_step_of_torch_runs() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])
    code = step_code(sys.modules["torch.optim.optimizer"])
    assert type(optimizer).step.__code__ is code
    assert code.co_varnames[0] == "args", "the optimizer is the first"


def test_steps_of_each_optimizer() -> None:
    text = "1.0 7 SGD\n1.0 8 Adam\n1.5 8 Adam\n2.0 7 SGD\n2.5 8 Adam\n3.0 9 LBFGS\n"
    often, seldom = stepped(text)
    assert often == Stepped("Adam", 2, 750.0, 1000.0)
    assert seldom == Stepped("SGD", 1, 1000.0, 1000.0)


@pytest.mark.parametrize(("seconds", "fills"), [(4.0, True), (4.4, True), (6.0, False)])
def test_steps_that_fill_the_time(seconds: float, fills: bool) -> None:
    assert Stepped("SGD", 40, 100.0, 200.0).fills(seconds) is fills


def test_what_the_process_runs_removes_itself_and_says_nothing_when_it_fails(tmp_path: Path) -> None:
    """Here no file is there to write to, and before Python 3.12 no ``sys.monitoring``."""
    script = tmp_path / "script.py"
    script.write_text(watcher(script, tmp_path / "gone/steps", 60), encoding="utf-8")
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {})
    assert not script.exists()
