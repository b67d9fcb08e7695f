"""What a failure offers besides its one line, and what a launch configuration turns into."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client, Error
from warpline.lsp.methods import launching, remedies

FAILS = """\
import torch


def load():
    return open("missing.txt")


load()
"""


def test_a_script_that_raises_offers_its_line_and_the_log(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(FAILS)
    client = connect(tmp_path)
    uri = client.open(script)
    with pytest.raises(Error) as error:
        client.request("warpline/profile", {"uri": uri, "python": sys.executable})
    found = error.value.data["remedies"]
    assert [one["command"] for one in found] == ["warpline.goTo", "warpline.showLog"]
    assert found[0]["title"] == "Go to train.py:5"
    assert found[0]["arguments"] == [{"uri": uri, "line": 4}]

    # As a command, the same in any editor that can show a document.
    client.answers["window/showMessageRequest"] = lambda params: params["actions"][0]
    assert client.command("warpline.profile", {"uri": uri, "python": sys.executable}) is None
    client.wait(lambda: client.messages("window/showDocument"))
    assert client.messages("window/showDocument")[0]["selection"]["start"] == {"line": 4, "character": 0}


def test_an_interpreter_that_is_not_there_or_has_no_torch(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    bare = tmp_path / "bin" / "python"
    bare.parent.mkdir()
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    for python in ("${workspaceFolder}/none/python", "bin/python"):
        client = connect(tmp_path, settings={"python": python})
        with pytest.raises(Error) as error:
            client.request("warpline/profile", {"uri": client.open(script)})
        choose, *install = error.value.data["remedies"]
        assert choose["command"] == "warpline.chooseInterpreter"
        assert str(tmp_path) in str(error.value)
    assert [one["arguments"] for one in install] == [[f"{bare} -m pip install torch"]]


def test_a_notebook_that_is_not_open_is_told_what_to_do(
    tmp_path: Path, connect: Callable[..., Client]
) -> None:
    client = connect(tmp_path)
    for uri in (f"vscode-notebook-cell:{tmp_path}/a.ipynb#W0", (tmp_path / "a.ipynb").as_uri()):
        with pytest.raises(Error, match=r"nbconvert --to script a\.ipynb") as error:
            client.request("warpline/profile", {"uri": uri})
        assert error.value.data["remedies"][0]["command"] == "warpline.typeInTerminal"


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ({"program": "train.py", "cwd": "sub"}, {"program": "{}/sub/train.py", "cwd": "{}/sub"}),
        (
            {"module": "torch.distributed.run", "args": ["--nproc-per-node", "2", "train.py", "--lr", "1"]},
            {
                "launcher": ["${python}", "-m", "torch.distributed.run", "--nproc-per-node", "2"],
                "program": "{}/train.py",
                "args": ["--lr", "1"],
            },
        ),
        (
            {"program": "/venv/bin/torchrun", "args": "--nproc-per-node=2 -m pkg.train --lr 1"},
            {
                "launcher": ["/venv/bin/torchrun", "--nproc-per-node=2"],
                "module": "pkg.train",
                "args": ["--lr", "1"],
            },
        ),
        (
            {"program": "${workspaceFolder}/x.py", "python": ".venv/bin/python"},
            {"python": "{}/.venv/bin/python"},
        ),
    ],
    ids=["relative", "torchrun as a module", "torchrun as a program", "interpreter"],
)
def test_launch_configurations(launch: dict[str, Any], expected: dict[str, Any]) -> None:
    folder = Path("/work place")
    found = launching.configuration(launch, "/work place/train.py", folder)
    for name, value in expected.items():
        wanted = value.replace("{}", str(folder)) if isinstance(value, str) else value
        assert found[name] == wanted


@pytest.mark.parametrize(
    ("launch", "named"),
    [
        ({"program": "${command:pickFile}"}, r"\$\{command:pickFile\}"),
        ({"program": "a.py", "args": ["${input:lr}"]}, r"\$\{input:lr\}"),
        ({"request": "attach", "program": "a.py"}, "attaches"),
        ({"program": "torchrun", "args": ["--help"]}, "torchrun"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(launch: dict[str, Any], named: str) -> None:
    with pytest.raises(launching.Unresolved, match=named):
        launching.configuration(launch, "/w/train.py", Path("/w"))


def test_the_deepest_frame_of_the_project_is_the_line_to_go_to() -> None:
    output = [
        "Traceback (most recent call last):",
        '  File "/w/train.py", line 12, in <module>',
        '  File "/w/model.py", line 7, in forward',
        '  File "/w/.venv/lib/python3.11/site-packages/torch/nn/functional.py", line 99, in linear',
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    ]
    assert remedies.user_frame(output, Path("/w")) == ("/w/model.py", 7)
    assert remedies.user_frame(output, Path("/elsewhere")) is None
    said = remedies.of_failure("torch is missing: `pip install torch`", [], Path("/w"))
    assert said[0]["arguments"] == ["pip install torch"]
