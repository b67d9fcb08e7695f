"""What a client asks for, as what is run: a launch configuration, a module, a launcher."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from warpline.lsp.methods.request import Refused, parse, place, request
from warpline.lsp.state.documents import Documents
from warpline.lsp.state.folders import Folders
from warpline.lsp.state.settings import Settings
from warpline.wire.run import Request

SETTINGS = Settings(python=sys.executable, steps=3, env={"A": "settings", "B": "settings"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "train.py").write_text("")
    (tmp_path / "tools" / "other.py").write_text("")
    return tmp_path


def made(folder: Path, params: dict[str, Any], settings: Settings = SETTINGS) -> Request:
    folders = Folders(Documents())
    folders.workspace.append(folder)
    parsed = parse(params)
    path, home = place(parsed, folders)
    assert home == folder
    return request(parsed, path, home, settings)


def test_a_launch_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", "/data")
    launch = {
        "name": "Train",
        "type": "debugpy",
        "request": "launch",
        "program": "${file}",
        "args": ["--data", "${env:DATA}", "--out", "${workspaceFolder}/out", "${unknown}"],
        "cwd": "${fileDirname}",
        "python": [sys.executable, "-X", "dev"],
        "env": {"B": "launch", "C": "${workspaceFolder}"},
        "console": "integratedTerminal",
    }
    script = folder / "tools" / "other.py"
    found = made(folder, {"uri": script.as_uri(), "launch": launch}, Settings(env=SETTINGS.env))
    assert (found.target, found.module, found.cwd) == (str(script), False, str(script.parent))
    assert found.argv == ("--data", "/data", "--out", f"{folder}/out", "${unknown}")
    assert found.python == sys.executable
    assert found.environment == {"A": "settings", "B": "launch", "C": str(folder)}

    # Its program is what runs, whichever file is open; what the client says besides wins.
    launch |= {"program": str(folder / "train.py"), "args": "--name 'two words'"}
    found = made(folder, {"uri": script.as_uri(), "launch": launch, "cwd": str(folder), "env": {"B": "own"}})
    assert (found.target, found.cwd, found.argv) == (
        str(folder / "train.py"),
        str(folder),
        ("--name", "two words"),
    )
    assert found.environment["B"] == "own"
    assert made(folder, {"launch": launch}).target == str(folder / "train.py")
    with pytest.raises(Refused, match="there is no file"):
        made(folder, {"launch": {"program": str(folder / "none.py")}})


@pytest.mark.parametrize(
    "params", [{"module": "tools.other"}, {"launch": {"module": "tools.other"}}], ids=["named", "launch"]
)
def test_a_module(folder: Path, params: dict[str, Any]) -> None:
    found = made(folder, {**params, "args": ["1"]})
    assert (found.target, found.module, found.argv) == ("tools.other", True, ("1",))
    assert (found.cwd, found.steps) == (str(folder), 3)
    # A file of the folder that it runs for may be named beside it.
    found = made(folder, {**params, "uri": (folder / "train.py").as_uri()})
    assert (found.target, found.module, found.argv) == ("tools.other", True, ())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ("accelerate", "launch")),
        ([], ()),
        (["torchrun", "--nproc-per-node", "2"], ("torchrun", "--nproc-per-node", "2")),
        ("torchrun --rdzv-conf 'a b'", ("torchrun", "--rdzv-conf", "a b")),
    ],
    ids=["setting", "none", "list", "text"],
)
def test_a_launcher(
    folder: Path, given: object, expected: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bin").mkdir()
    for name in ("torchrun", "accelerate"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"))
    settings = Settings(python=sys.executable, launcher=("accelerate", "launch"))
    params = {"uri": (folder / "train.py").as_uri(), "launcher": given}
    assert made(folder, params, settings).launcher == expected


def test_a_configuration_that_runs_torchrun_as_a_module(folder: Path) -> None:
    """By its own interpreter, as VS Code would: the one on the PATH may be another environment's."""
    launch = {
        "name": "Ranks",
        "type": "debugpy",
        "request": "launch",
        "module": "torch.distributed.run",
        "python": sys.executable,
        "args": ["--standalone", "--nproc-per-node", "2", "train.py", "--epochs", "3"],
    }
    found = made(folder, {"uri": (folder / "train.py").as_uri(), "launch": launch})
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert found.launcher == (sys.executable, *words)
    assert (found.target, found.module, found.argv) == (str(folder / "train.py"), False, ("--epochs", "3"))


def test_a_launcher_is_found_beside_the_interpreter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that was started from a menu has no environment's programs on its PATH."""
    there = folder / "env" / "bin"
    there.mkdir(parents=True)
    (there / "python").symlink_to(sys.executable)
    (there / "torchrun").write_text("#!/bin/sh\n")
    (there / "torchrun").chmod(0o755)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    params = {"uri": (folder / "train.py").as_uri(), "launcher": "torchrun --nproc-per-node 2"}
    found = made(folder, params, Settings(python=str(there / "python")))
    assert found.launcher == (str(there / "torchrun"), "--nproc-per-node", "2")


def test_wrong_parameters_are_refused(folder: Path) -> None:
    with pytest.raises(Refused, match="wrong parameters") as error:
        made(folder, {"launcher": 2})
    assert error.value.reason == "parameters"
    with pytest.raises(Refused, match="which file"):
        made(folder, {})
