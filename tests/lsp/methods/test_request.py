"""What a client asks for, as what is run: a launch configuration, a module, a launcher."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.folder import write_run
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


def test_variables_of_a_file(folder: Path) -> None:
    """``.env`` of the folder where none is named, as in VS Code; the configuration's own come first."""
    (folder / ".env").write_text("# of all\nA=file # why\nexport B='b # c'\nD=\nno assignment\n")
    (folder / "other.env").write_text('E="two words"\n')
    launch = {"program": str(folder / "train.py"), "env": {"A": "launch"}}
    assert made(folder, {"launch": launch}, Settings(python=sys.executable)).environment == {
        "A": "launch",
        "B": "b # c",
        "D": "",
    }
    launch["envFile"] = "${workspaceFolder}/other.env"
    found = made(folder, {"launch": launch}, Settings(python=sys.executable))
    assert found.environment == {"A": "launch", "E": "two words"}
    script = {"uri": (folder / "train.py").as_uri()}
    assert made(folder, script, Settings(python=sys.executable)).environment == {}


def test_again_is_as_the_run_was_made(folder: Path) -> None:
    script = folder / "train.py"
    words = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    earlier = Request(
        target=str(script),
        argv=("--lr", "1"),
        cwd=str(folder / "tools"),
        python=sys.executable,
        launcher=words,
        environment={"B": "run"},
        steps=7,
        whole_run=True,
    )
    run = write_run(folder, {script: ""}, argv=earlier.argv, request=earlier)
    write_run(folder, {script: ""})  # a newer one, made otherwise
    params = {"uri": script.as_uri(), "again": str(run)}
    assert made(folder, params) == earlier
    found = made(folder, {**params, "args": ["--lr", "2"], "env": {"C": "c"}})
    assert found == replace(earlier, argv=("--lr", "2"), environment={"B": "run", "C": "c"})

    # An interpreter that is gone is looked for anew, and the launcher goes with it.
    gone = replace(earlier, python="/gone/python", launcher=("/gone/python", *words[1:]))
    run = write_run(folder, {script: ""}, request=gone)
    assert made(folder, {**params, "again": str(run)}) == earlier

    with pytest.raises(Refused, match="no run of"):
        made(folder, {**params, "again": str(folder)})
    # One that was made in a terminal, in a folder below.
    folders = Folders(Documents())
    folders.workspace.append(folder)
    folders.add(folder / "tools")
    below = parse({**params, "again": str(folder / "tools" / ".warpline" / "runs" / "1")})
    assert place(below, folders) == (str(script), folder / "tools")
    script.unlink()
    with pytest.raises(Refused, match=r"no file .*train\.py any more"):
        made(folder, params)


def test_the_launcher_and_the_folder_of_the_last_time(folder: Path) -> None:
    script = folder / "train.py"
    launcher = ("accelerate", "launch")
    last = Request(target=str(script), argv=("--data", "../x"), cwd=str(folder / "tools"), launcher=launcher)
    write_run(folder, {script: ""}, request=last)
    params: dict[str, Any] = {"uri": script.as_uri()}
    found = made(folder, params)
    assert (found.argv, found.cwd, found.launcher[-1]) == (last.argv, last.cwd, "launch")
    assert made(folder, {**params, "launcher": []}).launcher == ()
    assert made(folder, params, replace(SETTINGS, launcher=("srun",))).launcher == ("srun",)
    # A launch configuration says all of it.
    found = made(folder, {"launch": {"program": str(script)}})
    assert (found.cwd, found.launcher, found.argv) == (str(folder), (), ())
    # The run that is shown comes before a newer one: a lens says what a click runs.
    shown = Request(target="tools.other", module=True, argv=("--shown",))
    found = request(parse(params), str(script), folder, SETTINGS, shown)
    assert (found.target, found.argv, found.launcher) == ("tools.other", ("--shown",), ())


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        *(
            (name, 5, "wrong type")
            for name in ("program", "module", "args", "python", "cwd", "env", "envFile")
        ),
        ("envFile", ["a"], "wrong type"),
        ("args", "--name 'two", "No closing quotation"),
    ],
)
def test_a_malformed_configuration_is_refused_in_one_line(
    field: str, value: object, said: str, folder: Path
) -> None:
    launch = {"name": "Train", "program": str(folder / "train.py"), field: value}
    with pytest.raises(Refused, match=f'^Train: "{field}".*{said}$'):
        made(folder, {"uri": (folder / "train.py").as_uri(), "launch": launch})


def test_wrong_parameters_are_refused(folder: Path) -> None:
    with pytest.raises(Refused, match="launcher: No closing quotation"):
        made(folder, {"uri": (folder / "train.py").as_uri(), "launcher": "torchrun '"})
    with pytest.raises(Refused, match="wrong parameters") as error:
        made(folder, {"launcher": 2})
    assert error.value.reason == "parameters"
    with pytest.raises(Refused, match="which file"):
        made(folder, {})
