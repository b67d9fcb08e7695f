"""Scripts that change what is under their feet: the working folder, the program itself, monitoring's ids."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline.capture import launch
from warpline.capture.runner import reexec
from warpline.capture.runner.lines import events, monitoring
from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.names import QualifiedNames
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.model.problem import Problem

STEPS = """\
net = torch.nn.Linear(64, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(16, 64)).sum().backward()
    optimizer.step()
"""


def test_the_working_folder_is_deleted(tmp_path: Path) -> None:
    """In its third step: torch itself cannot make an optimizer where there is none."""
    text = (
        "import os, shutil, tempfile, torch\ngone, done = tempfile.mkdtemp(), 0\nos.chdir(gone)\n"
        + STEPS
        + "    done += 1\n    if done == 3:\n        shutil.rmtree(gone)\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.lines()["train.py", 7] >= 3
    assert captured.output == ""


def test_the_script_has_a_hook_at_every_optimizer(tmp_path: Path) -> None:
    """torch iterates over all hooks while ours chooses what marks the steps."""
    text = (
        "import torch\nfrom torch.optim.optimizer import register_optimizer_step_post_hook\n"
        "register_optimizer_step_post_hook(lambda *step: None)\n"
        + STEPS.replace("while True", "for _ in range(900)")
    )
    captured = Captured(request(write(tmp_path, text), whole_run=True), tmp_path)
    assert captured.lines()["train.py", 7] >= 3
    assert captured.output == ""


def test_a_script_that_starts_itself_anew_is_measured(tmp_path: Path) -> None:
    text = (
        "import os, sys\nif os.environ.get('AGAIN') != '1':\n    os.environ['AGAIN'] = '1'\n"
        "    os.execv(sys.executable, [sys.executable, '-u', *sys.argv, 'more'])\n"
        "print(sys.argv[1:], __file__ == sys.argv[0], flush=True)\nimport torch\n" + STEPS
    )
    captured = Captured(request(write(tmp_path, text), argv=("one",)), tmp_path)
    assert captured.lines()["train.py", 10] >= 3
    assert captured.output == "['one', 'more'] True\n"


def test_a_script_that_becomes_another_program_is_named(tmp_path: Path) -> None:
    text = "import os\nos.execvp('true', ['true'])\n"
    with pytest.raises(Problem, match=r"replaced itself with true \(os\.exec…\), which is not measured"):
        launch.capture(request(write(tmp_path, text)), tmp_path / "run")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["python", "train.py", "--fast"], ["python"]),
        (["python", "-u", "-W", "ignore", "train.py"], ["python", "-u", "-W", "ignore"]),
        (["python", "-m", "pack.train", "x"], ["python"]),
        (["python", "-c", "pass"], None),
        (["python"], None),
    ],
)
def test_what_is_followed(tmp_path: Path, words: list[str], kept: list[str] | None) -> None:
    control = tmp_path / "control.json"
    control.write_text('{"request": {}}')
    found = reexec.followed(str(control), sys.executable, words)
    assert (None if found is None else found[:-2]) == kept
    if found is not None:
        assert found[-2:] == [reexec.BOOT, str(tmp_path / "control-again.json")]


def locations() -> Locations:
    return Locations(UserFiles((), ()), QualifiedNames())


@pytest.mark.parametrize("python", PYTHONS)
def test_a_script_that_takes_every_monitoring_id(python: str, tmp_path: Path) -> None:
    """From Python 3.12 on; before there are none, and this is a script like others. It takes those that it
    finds free: by then one may be ours."""
    text = (
        "import sys, torch\nmonitoring = getattr(sys, 'monitoring', None)\n"
        "for number in range(6) if monitoring else ():\n"
        "    if monitoring.get_tool(number) is None:\n        monitoring.use_tool_id(number, 'mine')\n"
    ) + STEPS.replace("import torch\n", "")
    captured = Captured(request(write(tmp_path, text), python), tmp_path)
    assert captured.manifest.line_events in ("monitoring", "settrace")
    assert captured.manifest.notes == () or captured.manifest.line_events == "settrace"
    assert captured.lines()["train.py", 9] >= 3
    assert captured.output == ""


def test_every_monitoring_id_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for ``sys.monitoring``, also where that exists: this test is then about the choice."""
    users: dict[int, str] = {}
    monkeypatch.setattr(monitoring, "_monitoring", SimpleNamespace(get_tool=users.get))
    monkeypatch.setattr(events.sys, "version_info", (3, 12, 1))
    found, note = events.usable(locations())
    assert (found.kind, note) == ("monitoring", "")
    users.update(dict.fromkeys(range(6), "theirs"))
    assert monitoring.free_tool() is None
    fallback, note = events.usable(locations(), found)
    assert fallback.kind == "settrace"
    assert "every tool id of sys.monitoring" in note
    assert events.usable(locations(), fallback) == (fallback, "")
