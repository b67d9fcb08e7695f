"""What a block's measurement leaves where it cannot begin or end as it should."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.inprocess.hooks import hooks, left
from warpline.capture.inprocess import Cells, InProcess
from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.tracing import Tracing
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.resident import Resident
from warpline.capture.runner.steps.beat import Steps
from warpline.model.problem import Problem
from warpline.wire.run import Request

#: What measuring hooks into. Other modules of pytest's process, and its threads, come and go by themselves.
PACKAGES = ("torch", "sys", "threading", "gc", "os", "builtins", "importlib")
HOOKED = ("torch.", "sys.", "threading.", "gc.", "os.", "builtins.", "importlib._", "f_trace of ")


def block(folder: Path) -> InProcess:
    request = Request(target=__file__, cwd=str(folder), whole_run=True)
    return InProcess(request, __file__, folder / "runs" / "a", None, Cells({}, {}))


def nothing_measured(folder: Path) -> None:
    made = block(folder)
    made.start()
    with pytest.raises(Problem, match="no step was found"):
        made.stop(failed=False)


@pytest.mark.parametrize("broken", [(Resident, "torch_is_here"), (Steps, "install")])
def test_a_start_that_fails_leaves_no_hook(
    broken: tuple[type, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no such operator")

    nothing_measured(tmp_path)  # what is imported once is imported
    before = {name: thing for name, thing in hooks(PACKAGES).items() if name.startswith(HOOKED)}
    with monkeypatch.context() as patched:
        patched.setattr(*broken, fails)
        with pytest.raises(RuntimeError):
            block(tmp_path).start()
    assert left(before, hooks(PACKAGES)) == []
    assert list((tmp_path / "runs").iterdir()) == []
    nothing_measured(tmp_path)  # no other block is thought to be measured
    assert left(before, hooks(PACKAGES)) == []


def test_a_forked_child_leaves_its_parents_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = block(tmp_path)
    made.start()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: made.pid + 1)
        made.stop(failed=True)
        assert made.partial.is_dir()
    with pytest.raises(Problem, match="no step was found"):
        made.stop(failed=False)
    assert not made.partial.exists()


def test_steps_of_a_forked_child_do_not_count(tmp_path: Path) -> None:
    made = block(tmp_path)
    made.start()
    resident = made.resident
    assert resident is not None
    resident.forget()  # as in the child
    for _ in range(9):
        resident.steps.heard("optimizer", 1)
    counted = resident.boundaries
    with pytest.raises(Problem):
        made.stop(failed=False)
    assert counted == 0


@pytest.mark.parametrize("debugger", [None, lambda *_: None])
def test_new_threads_begin_with_a_debuggers_trace_function_again(debugger: Any) -> None:
    lines = Tracing(Locations(UserFiles((), ()), QualifiedNames()))
    before = threading._trace_hook  # type: ignore[attr-defined]  # what gettrace() returns from 3.10 on
    threading.settrace(debugger)
    try:
        lines.start()
        assert threading._trace_hook not in (None, debugger)  # type: ignore[attr-defined]
        lines.stop()
        assert threading._trace_hook is debugger  # type: ignore[attr-defined]
    finally:
        threading.settrace(before)
