"""Blocks of one real process, profiled as they run (``blocks.py``)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LIMIT_S, ROOT, environment, warpline
from warpline import runs

pytestmark = pytest.mark.process
BLOCKS = Path(__file__).with_name("blocks.py")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("blocks")
    ended = subprocess.run(
        [sys.executable, str(BLOCKS)],
        cwd=folder,
        env=environment(PYTHONPATH=f"{ROOT}:{environment()['PYTHONPATH']}", PYTHONWARNINGS="ignore"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert ended.returncode == 0, ended.stderr
    return folder, ended


@pytest.fixture(scope="module")
def told(done: tuple[Path, subprocess.CompletedProcess[str]]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done[1].stdout.splitlines()[-1])
    return found


def test_no_hook_is_left(told: dict[str, Any]) -> None:
    left = {name: found for name, found in told.items() if name.startswith("left ")}
    assert len(left) == 12
    assert not any(left.values()), left


def code(line: str) -> str:
    return BLOCKS.read_text().splitlines()[int(line.rpartition(":")[2]) - 1].strip()


@pytest.mark.parametrize("name", ["long", "12 steps", "6 steps", "outer", "thread", "decorated", "awaited"])
def test_lines_of_the_block_are_costed(told: dict[str, Any], name: str) -> None:
    found = told[name]
    assert found["problem"] == ""
    by_text: dict[str, float] = {}
    for line, step_ms in found["lines"].items():
        by_text[code(line)] = by_text.get(code(line), 0.0) + step_ms
    steps = {
        "optimizer.zero_grad()",
        "model(torch.ones(64, 128)).pow(2).mean().backward()",
        "optimizer.step()",
    }
    assert steps < set(by_text)
    if name == "long":  # of one or two captured steps a busy machine makes anything
        assert max(by_text, key=by_text.__getitem__).startswith("model(")
    assert sum(by_text.values()) == pytest.approx(found["step_ms"], rel=0.01)


def test_a_long_block_has_all_its_windows(told: dict[str, Any]) -> None:
    assert told["long"]["steps"] == 5


def test_steps_may_be_marked(told: dict[str, Any]) -> None:
    assert told["marks"]["problem"] == ""
    assert {code(line) for line in told["marks"]["lines"]} >= {"total = total @ total", "run.step()"}


def test_a_block_with_too_few_steps_says_what_helps(told: dict[str, Any]) -> None:
    assert told["short"]["problem"].startswith("the block ended after 5 steps, before they were measured: ")
    assert told["timing"]["problem"].startswith("the block ended after 60 steps, before they were measured: ")
    assert told["short"]["path"] == ""


@pytest.mark.parametrize("made", [0, 1, 6, 9])
def test_exceptions_pass_through(told: dict[str, Any], made: int) -> None:
    assert told[f"raised after {made}"] == made


def test_one_block_at_a_time(told: dict[str, Any]) -> None:
    assert told["inner"]["problem"] == "another block of this process is being profiled"


def test_a_decorated_function_is_what_it_was(told: dict[str, Any]) -> None:
    assert told["returned"] == [2, 12, 12]
    assert told["called"] == ["decorated", "Documented."]
    assert told["measured once"]


def test_the_table_is_printed_and_the_run_kept(
    done: tuple[Path, subprocess.CompletedProcess[str]], told: dict[str, Any]
) -> None:
    folder, ended = done
    assert "5 steps captured" in ended.stdout
    assert "model(torch.ones(64, 128))" in ended.stdout
    measured = [name for name, found in told.items() if isinstance(found, dict) and found.get("path")]
    kept = [path for path in (folder / ".warpline/runs").iterdir() if runs.is_run(path)]
    assert len(kept) == len(measured) + 1  # the first block is not remembered
    assert [path for path in (folder / ".warpline/runs").iterdir() if path.name.startswith(".")] == []
    shown = warpline("report", told["long"]["path"], "--top", "3", cwd=folder)
    assert "model(torch.ones(64, 128))" in shown.stdout, shown.stderr


def test_a_script_under_the_profiler_is_measured_once(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch, warpline\nwith warpline.profile() as run:\n    total = torch.eye(64)\n"
        "    for _ in range(2):\n        total = total @ total\nprint(run.problem)\n"
    )
    ended = warpline("profile", "--python", sys.executable, script, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "warpline: this process is already measured by `warpline profile`" in ended.stderr
    assert len([*(tmp_path / ".warpline/runs").glob("*/manifest.json")]) == 1
