"""Which runs are kept, and how they are listed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import warpline
from tests.lsp.folder import write_run
from warpline import keeping, pipeline
from warpline.keeping import Kept
from warpline.project import Settings

DAY = 86400.0
NOW = 1000 * DAY


def kept(name: str, age: float, megabytes: float = 1.0, argv: tuple[str, ...] = ()) -> Kept:
    """A run of train.py, ``age`` days old."""
    return Kept(name, "/p/train.py", False, argv, NOW - age * DAY, 1.0, int(megabytes * 1e6))


def gone(found: list[Kept], **settings: object) -> list[str]:
    return [run.run for run in keeping.superfluous(found, replace(Settings(), **settings), NOW)]  # type: ignore[arg-type]


def test_by_count_age_and_size() -> None:
    found = [kept("c", 1), kept("b", 2), kept("a", 3)]
    assert gone(found) == []
    assert gone(found, keep_runs=2) == ["a"]
    assert gone(found, keep_days=1.5) == ["b", "a"]
    assert gone(found, keep_mb=2.5) == ["a"]
    assert gone([kept("c", 1), kept("b", 2, 50), kept("a", 3)], keep_mb=10) == ["b"], "what fits stays"


def test_the_newest_of_each_command_stays() -> None:
    found = [
        kept("e", 1),
        kept("d", 2, argv=("--lr", "1")),
        kept("c", 400, 5000, argv=("--lr", "2")),
        replace(kept("b", 500), script="other", module=True),
        kept("a", 600, argv=("--lr", "1")),
    ]
    assert gone(found, keep_runs=1, keep_days=1, keep_mb=1) == ["a"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = tmp_path / "train.py"
    for name, argv in (("1", ()), ("2", ("--a b",)), ("3", ()), ("4", ())):
        write_run(tmp_path, {script: "x = 1  # 12.5 ms\n"}, name=name, argv=argv)
    return tmp_path


def test_runs_lists_and_prunes(folder: Path) -> None:
    place = folder / ".warpline/runs"
    (place / "no-run").mkdir()
    (place / "link").symlink_to(place / "1")
    done = warpline("runs", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["4", "3", "2", "1"]
    assert "12.5 ms" in lines[1] and lines[3].endswith("train.py '--a b'")
    assert lines[5].startswith("4 runs, ")
    (folder / "pyproject.toml").write_text("[tool.warpline]\nkeep-runs = 1\n")
    done = warpline("runs", "--prune", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [run["run"] for run in told["runs"]] == ["4", "2"]
    assert [run["run"] for run in told["removed"]] == ["3", "1"]
    assert told["runs"][1]["argv"] == ["--a b"] and told["runs"][1]["bytes"] > 0
    assert sorted(path.name for path in place.iterdir()) == ["2", "4", "link", "no-run"]
    assert "nothing to remove" in warpline("runs", "--prune", cwd=folder).stdout


def test_no_runs(tmp_path: Path) -> None:
    done = warpline("runs", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("0 runs")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_cannot_be_read_remove_nothing(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.warpline]\nkeep-runs = 0\n")
    pipeline._prune(folder / ".warpline/runs")
    done = warpline("runs", "--prune", cwd=folder)
    assert done.returncode == 2 and "keep-runs" in done.stderr.replace("_", "-")
    assert len(keeping.listed(folder / ".warpline/runs")) == 4


def test_a_folder_of_the_users_is_not_pruned(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.warpline]\nkeep-runs = 1\n")
    shutil.move(folder / ".warpline/runs", folder / "mine")
    pipeline._prune(folder / "mine")
    assert len(keeping.listed(folder / "mine")) == 4
