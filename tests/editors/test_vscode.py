"""A session in both VS Codes, with the ``.vsix`` as it is shipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.editors.desk import CALLS_LIBRARY, HERE, PICTURES, ROOT, Desk
from tests.frameworks.installed import missing

CELLS = (
    "%matplotlib inline\nimport time\nimport torch",
    "class Rows(torch.utils.data.Dataset):\n    def __len__(self):\n        return 4096\n\n"
    "    def __getitem__(self, index):\n        time.sleep(0.0005)\n        return torch.randn(512)\n\n"
    "loader = torch.utils.data.DataLoader(Rows(), batch_size=32)\nmodel = torch.nn.Linear(512, 512)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    "for rows in loader:\n    loss = model(rows.repeat(8, 1)).sum()\n"
    "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()",
)

#: Rows from a disk that takes its time. Waiting needs no core: two workers halve it on a busy machine too.
ROWS = """import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.full((64,), float(index))


def main() -> None:
    loader = DataLoader(Rows(), batch_size=32)
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for rows in loader:
        loss = model(rows / 4096).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""

#: A model and a Trainer of transformers: modules in modules, and accelerate around them.
TRAINER = """import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

small = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
rows = [
    {"input_ids": torch.randint(0, 30000, (64,)), "attention_mask": torch.ones(64, dtype=int), "labels": 1}
    for _ in range(2000)
]
made = TrainingArguments("out", max_steps=400, report_to=[], save_strategy="no")
Trainer(model=BertForSequenceClassification(small), args=made, train_dataset=rows).train()  # here
"""

#: A script for each library, and what its session is told. The frameworks are only run where they are.
LIBRARIES: dict[str, tuple[str, dict[str, str]]] = {"yaml": (CALLS_LIBRARY, {})}
if not {"transformers", "accelerate"} & set(missing(sys.executable)):
    LIBRARIES["transformers"] = (TRAINER, {"part": "self", "picture": "vscode-library"})


@pytest.mark.parametrize("version", ["vscode-new", "vscode-old"])
def test_a_session(version: str, editors: Path, vsix: Path, desk: Desk) -> None:
    (desk.workspace / ".warpline").mkdir()
    (desk.workspace / ".warpline" / ".gitignore").write_text("*\n")
    options: dict[str, Any] = {
        "codeServer": str(editors / version / "code-server"),
        "vsix": str(vsix),
        "out": str(desk.out),
        "workspace": str(desk.workspace),
        "env": {**desk.environment, "PIP_CACHE_DIR": str(editors / "pip")},
        "settings": {"warpline.python": sys.executable},
        **pictures(version, version == "vscode-new"),
    }
    # The old one is dark and makes the server's environment on first start; the new one is told of one.
    if version == "vscode-new":
        options["env"]["PYTHONPATH"] = str(ROOT / "server")
        options["settings"]["warpline.server.python"] = sys.executable
    else:
        options["settings"]["workbench.colorTheme"] = "Default Dark Modern"
    drive("scenario.mjs", options, desk)


def test_beside_the_code(editors: Path, vsix: Path, desk: Desk) -> None:
    """The page of a run that was made in a terminal, beside its script."""
    desk.profile("train.py")
    drive("beside.mjs", trusted(editors, vsix, desk), desk)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library(library: str, editors: Path, vsix: Path, desk: Desk) -> None:
    """A line that calls a library, opened in the tree down to the library's file; another run is newer."""
    text, options = LIBRARIES[library]
    (desk.workspace / "script.py").write_text(text)
    for script in ("script.py", "train.py"):
        desk.profile(script)
    calls = next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    drive(
        "library.mjs", {**trusted(editors, vsix, desk), "script": "script.py", "line": calls, **options}, desk
    )


def test_the_best_set(editors: Path, vsix: Path, desk: Desk) -> None:
    """It is searched for to the end, applied, and taken back by one undo."""
    (desk.workspace / "rows.py").write_text(ROWS)
    options = trusted(editors, vsix, desk)
    options["settings"]["warpline.tune.budget"] = 240
    drive("best.mjs", options, desk)


def test_a_notebook(editors: Path, vsix: Path, desk: Desk) -> None:
    """Its cells are profiled and shown, without the Jupyter extension."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A small net"]},
        *(
            {"cell_type": "code", "metadata": {}, "source": [text], "outputs": [], "execution_count": None}
            for text in CELLS
        ),
    ]
    about = {
        "language_info": {"name": "python"},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
    }
    notebook = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 4}
    (desk.workspace / "train.ipynb").write_text(json.dumps(notebook))
    drive("notebook.mjs", trusted(editors, vsix, desk), desk)


def trusted(editors: Path, vsix: Path, desk: Desk) -> dict[str, Any]:
    """A window of the new VS Code whose workspace is trusted, with our sources as the server."""
    options: dict[str, Any] = {
        "codeServer": str(editors / "vscode-new" / "code-server"),
        "vsix": str(vsix),
        "out": str(desk.out),
        "workspace": str(desk.workspace),
        "env": {**desk.environment, "PYTHONPATH": str(ROOT / "server")},
        "settings": {
            "warpline.python": sys.executable,
            "warpline.server.python": sys.executable,
            "security.workspace.trust.enabled": False,
        },
        **pictures("vscode-new"),
    }
    return options


def test_a_newcomer(editors: Path, platform_vsix: Path, desk: Desk) -> None:
    """From the ``.vsix`` to a first fix that is measured and applied, on a machine without our sources and
    without a network: the project has its environment with torch, and the system a Python."""
    (desk.workspace / ".venv").symlink_to(sys.prefix)
    options: dict[str, Any] = {
        "codeServer": str(editors / "vscode-new" / "code-server"),
        "vsix": str(platform_vsix),
        "out": str(desk.out),
        "workspace": str(desk.workspace),
        "env": {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PIP_NO_INDEX": "1",
        },
        "bare": True,
        "settings": {"workbench.colorTheme": "Default Dark Modern"},
        **pictures("vscode-new"),
    }
    before = without_network()
    drive("newcomer.mjs", {**options, "offline": bool(before)}, desk, before)


def pictures(version: str, documented: bool = True) -> dict[str, Any]:
    """Where a scenario leaves its pictures: with ``WARPLINE_PICTURES=1`` (`make pictures`) those that the
    documentation has, and the session ends after the last of them; else all of them in the folder that this
    names, to be looked at, with the log of the session."""
    wanted = os.environ.get("WARPLINE_PICTURES", "")
    if wanted == "1":
        return {"pictures": str(PICTURES), "onlyPictures": True} if documented else {}
    if not wanted:
        return {}
    folder = Path(wanted) / version
    folder.mkdir(parents=True, exist_ok=True)
    return {"pictures": str(folder), "looks": str(folder)}


def without_network() -> list[str]:
    """The beginning of a command that runs in a network namespace with nothing but a loopback. Where that
    is forbidden, pip is told to use no index: it is all that would ask for one."""
    start = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    for unshare in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        if subprocess.run([*unshare, *start, "true"], capture_output=True).returncode == 0:
            return [*unshare, *start]
    return []


def drive(scenario: str, options: dict[str, Any], desk: Desk, before: Sequence[str] = ()) -> None:
    command = [*before, "node", str(HERE / "vscode" / scenario), json.dumps(options)]
    log = desk.out / "session.log"  # written as it goes on: there also when the test is ended
    with log.open("w") as output:
        session = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT)
    assert session.returncode == 0, log.read_text()
    if "looks" in options:
        shutil.copyfile(log, Path(options["looks"]) / f"{scenario}.log")
