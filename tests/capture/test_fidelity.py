"""The script sees what ``python script.py args`` would show it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, SCRIPTS, request
from warpline.capture import launch
from warpline.model.problem import Problem


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "mein Projekt"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "__init__.py").touch()
    for place in (folder, folder / "package"):
        shutil.copy(SCRIPTS / "mirror.py", place / "mirror.py")
    for name in ("session", "queue", "steps"):
        # The standard library's queue is needed by others in it: ours has to stand in for it.
        source = "MINE = True\n"
        if name == "queue":
            source += "from _queue import SimpleQueue, Empty\nclass Full(Exception): pass\n"
            source += "class Queue: pass\nclass PriorityQueue(Queue): pass\nclass LifoQueue(Queue): pass\n"
        (folder / f"{name}.py").write_text(source)
    return folder


def seen(output: str) -> dict[str, object]:
    (line,) = (line for line in output.splitlines() if line.startswith("SEEN "))
    found: dict[str, object] = json.loads(line.removeprefix("SEEN "))
    return found


@pytest.mark.parametrize("words", [["mirror.py", "--a", "b c"], ["-m", "package.mirror", "--a"]])
def test_the_script_sees_the_same_world(project: Path, python: str, words: list[str]) -> None:
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(project.parent / "elsewhere")}
    (project / "input.txt").write_text("typed by the user")
    with (project / "input.txt").open() as stdin:
        plainly = subprocess.run(
            [python, *words],
            cwd=project,
            env={**os.environ, **environment},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=180,
        )
    assert plainly.returncode == 7, plainly.stderr
    module = words[0] == "-m"
    asked = request(
        project / words[0],
        python,
        target=words[1] if module else str(project / words[0]),
        typed="" if module else words[0],
        module=module,
        argv=tuple(words[2:] if module else words[1:]),
        environment=environment,
    )
    log = project / "log.txt"
    with (project / "input.txt").open() as stdin, log.open("wb") as output, pytest.raises(Problem) as problem:
        launch.capture(asked, project / "run", stdin=stdin.fileno(), output=output.fileno())
    assert str(problem.value).endswith("exited with status 7 before its first step")
    assert seen(log.read_text()) == seen(plainly.stdout)


def test_a_traceback_is_the_scripts_own(tmp_path: Path, python: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "def data():\n"
        "    return torch.utils.data.DataLoader([], batch_size=-1)\n"
        "try:\n"
        "    data()\n"
        "except ValueError as error:\n"
        "    raise RuntimeError('no data') from error\n"
    )
    plainly = subprocess.run([python, str(script)], capture_output=True, text=True, timeout=180, cwd=tmp_path)
    log = tmp_path / "log.txt"
    with log.open("wb") as output, pytest.raises(Problem, match="RuntimeError: no data") as problem:
        launch.capture(request(script, python), tmp_path / "run", output=output.fileno())
    assert problem.value.status == 1
    assert log.read_text() == plainly.stderr
