"""``warpline fix --diff`` and ``--write`` on a script that was really profiled; ``rules``, ``explain``."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment, warpline
from warpline.rules import names

SCRIPT = """\
# -*- coding: utf-8 -*-
import gc
import sys
import torch
from data import SETTINGS, Waves
from torch.utils.data import DataLoader

def main():
    torch.manual_seed(0)
    kept = [{"index": n, "more": [n]} for n in range(40_000)]
    loader = DataLoader(Waves(), batch_size=32, **SETTINGS)  # größer?
    model = torch.nn.Linear(64, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gc.collect()  # keeps memory low
        if step == 5:
            print("loss", loss.item())
            if len(sys.argv) > 1:
                break

if __name__ == "__main__":
    main()
"""

#: Letters of two and of four bytes before what is edited; the second is two units of UTF-16.
SETTINGS = 'LABEL = "größer 🚀"; SETTINGS = {"num_workers": 0}'
DATA = f"""\
import torch

{SETTINGS}


class Waves(torch.utils.data.Dataset):
    def __len__(self):
        return 64_000

    def __getitem__(self, index):
        wave = torch.linspace(0, 1, 8192) * index
        for _ in range(64):
            wave = wave.sin()
        return wave[:64], index % 4
"""


COLLECTED = "        gc.collect()  # keeps memory low\n"


@dataclass(frozen=True)
class Profiled:
    folder: Path
    script: Path
    data: Path

    def fix(self, *words: str) -> subprocess.CompletedProcess[str]:
        return warpline("fix", *words, self.script.name, cwd=self.folder)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    folder = tmp_path_factory.mktemp("fix")
    script, data = folder / "train.py", folder / "data.py"
    script.write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    data.write_text(DATA)
    done = warpline("profile", "--steps", "3", script.name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return Profiled(folder, script, data)


@pytest.fixture
def profiled(once: Profiled) -> Profiled:
    """The sources as they were when they were profiled."""
    for path, content in ((once.script, SCRIPT.replace("\n", "\r\n").encode()), (once.data, DATA.encode())):
        path.chmod(0o644)
        path.write_bytes(content)
    return once


def test_diff_shows_and_changes_nothing(profiled: Profiled) -> None:
    before = profiled.script.read_bytes(), profiled.data.read_bytes()
    done = profiled.fix("--diff")
    assert done.returncode == 0, done.stderr
    removed = [line.rstrip() for line in done.stdout.splitlines() if line.startswith("-")]
    assert "--- a/data.py" in removed and f"-{SETTINGS}" in removed
    assert "-        gc.collect()  # keeps memory low" in removed
    assert (profiled.script.read_bytes(), profiled.data.read_bytes()) == before


def test_diff_is_a_patch(profiled: Profiled) -> None:
    done = profiled.fix("--diff", "--rule", "loader-without-workers")
    applied = subprocess.run(["git", "apply", "-"], input=done.stdout, text=True, cwd=profiled.folder)
    assert applied.returncode == 0
    assert '"num_workers": 0' not in profiled.data.read_text()


def test_from_a_folder_below_the_diff_is_one_for_the_project(profiled: Profiled) -> None:
    below = profiled.folder / "notes"
    below.mkdir()
    (profiled.folder / "pyproject.toml").touch()
    rule = ("--rule", "loader-without-workers")
    done = warpline("fix", "--diff", *rule, "../train.py", cwd=below)
    assert done.returncode == 0, done.stderr
    assert done.stdout == profiled.fix("--diff", *rule).stdout
    assert f"the paths are relative to {profiled.folder.resolve()}" in done.stderr
    assert "relative to" not in profiled.fix("--diff", *rule).stderr


def test_write_changes_only_what_it_names_and_the_script_runs(profiled: Profiled) -> None:
    done = profiled.fix("--write", "--rule", "gc-pause-in-step", "--rule", "loader-without-workers")
    assert done.returncode == 0, done.stderr
    assert "gc-pause-in-step" in done.stdout and "data.py:3 loader-without-workers" in done.stdout
    # With the call goes the import that only it used.
    expected = SCRIPT.replace(COLLECTED, "").replace("import gc\n", "").replace("\n", "\r\n")
    assert profiled.script.read_bytes() == expected.encode()
    ast.parse(profiled.data.read_text())
    settings = profiled.data.read_text().splitlines()[2]
    assert '"persistent_workers": True' in settings and '"num_workers": 0' not in settings
    again = profiled.fix("--write", "--rule", "gc-pause-in-step", "--rule", "loader-without-workers")
    assert again.returncode == 0
    assert "nothing to change" in again.stderr
    assert profiled.script.read_bytes() == expected.encode()


def test_columns_are_counted_in_code_points(profiled: Profiled) -> None:
    report = json.loads(warpline("show", "--json", "-", cwd=profiled.folder).stdout)
    (found,) = (one for one in report["findings"] if one["rule"] == "loader-without-workers")
    lines = DATA.splitlines(keepends=True)
    edits, at = found["fixes"][0]["edits"], lines.index(f"{SETTINGS}\n") + 1
    for edit in sorted(edits, key=lambda edit: edit["start"], reverse=True):
        assert edit["file"] == str(profiled.data)
        (start, first), (end, last) = edit["start"], edit["end"]
        assert start == end == at
        line = lines[start - 1]
        lines[start - 1] = line[:first] + edit["text"] + line[last:]
    assert profiled.fix("--write", "--rule", "loader-without-workers").returncode == 0
    assert profiled.data.read_text() == "".join(lines)


def test_written_script_has_the_same_loss(profiled: Profiled) -> None:
    def loss() -> str:
        words = [sys.executable, profiled.script.name, "short"]
        done = subprocess.run(
            words, cwd=profiled.folder, env=environment(), capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = loss()
    assert before.startswith("loss ")
    assert profiled.fix("--write").returncode == 0
    assert loss() == before


def test_a_file_that_is_not_writable_costs_one_line(profiled: Profiled) -> None:
    profiled.data.chmod(0o444)
    done = profiled.fix("--write", "--rule", "gc-pause-in-step", "--rule", "loader-without-workers")
    assert done.returncode == 0
    assert len([line for line in done.stderr.splitlines() if "not writable" in line]) == 1
    assert profiled.data.read_text() == DATA
    assert b"gc.collect()" not in profiled.script.read_bytes()
    assert "gc-pause-in-step" in done.stdout and "loader-without-workers" not in done.stdout


def test_a_file_that_no_longer_parses_is_left_alone(profiled: Profiled) -> None:
    profiled.script.write_text(SCRIPT + "\ndef broken(:\n")
    done = profiled.fix("--write", "--rule", "gc-pause-in-step", "--rule", "loader-without-workers")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert profiled.script.read_text() == SCRIPT + "\ndef broken(:\n"


def test_edits_after_the_run_are_followed(profiled: Profiled) -> None:
    moved = SCRIPT.replace("import gc\n", '"""New first lines."""\nimport os\nimport gc\n')
    profiled.script.write_text(moved)
    done = profiled.fix("--write", "--rule", "gc-pause-in-step")
    assert done.returncode == 0, done.stderr
    assert profiled.script.read_text() == moved.replace(COLLECTED, "").replace("import gc\n", "")


def test_only_a_line(profiled: Profiled) -> None:
    line = SCRIPT.splitlines().index("        gc.collect()  # keeps memory low") + 1
    done = profiled.fix("--diff", "--line", str(line))
    assert "gc.collect" in done.stdout and "num_workers" not in done.stdout
    none = profiled.fix("--diff", "--line", "1")
    assert (none.returncode, none.stdout) == (0, "")
    assert "nothing to change" in none.stderr


def test_an_unknown_rule_is_one_line(profiled: Profiled) -> None:
    done = profiled.fix("--diff", "--rule", "no-such-rule")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_rules_and_explain(tmp_path: Path) -> None:
    listed = warpline("rules", cwd=tmp_path)
    assert listed.returncode == 0
    assert [name for name in names() if f"  {name} " not in listed.stdout] == []
    page = warpline("explain", "loader-without-workers", cwd=tmp_path)
    assert page.returncode == 0
    assert "## Fix safety" in page.stdout and "#>" not in page.stdout
    wrong = warpline("explain", "loader-without-worker", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean loader-without-workers?" in wrong.stderr
