"""Where one editor session works, and what a page of docs/editors says to put into the editor's settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

#: A script with most of its step in a library that is no part of torch.
CALLS_LIBRARY = """import torch
import yaml

TEXT = "\\n".join(f"key{n}: [1, 2, {{a: {n}}}]" for n in range(60))
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    settings = yaml.safe_load(TEXT)  # here
    loss = model(torch.randn(64, 64)).sum() * len(settings)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: Of `make pictures`, until all of them are there.
PICTURES = ROOT / ".cache" / "pictures"
#: Every wait is for a state, and this long at most: a build machine may be very slow.
LIMIT_S = float(os.environ.get("WARPLINE_LIMIT_S", "120"))

T = TypeVar("T")


def until(what: str, state: Callable[[], T]) -> T:
    """Wait until ``state()`` is something, and return it."""
    end = time.monotonic() + LIMIT_S
    while not (value := state()):
        if time.monotonic() > end:
            raise AssertionError(f"never came: {what}; last: {value!r}")
        time.sleep(0.1)
    print("ok  ", what)
    return value


def snippet(page: str, language: str) -> str:
    """All blocks of one language on a page of docs/editors, in their order."""
    text = (ROOT / "docs" / "editors" / page).read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks, f"docs/editors/{page} has no {language} block"
    return "\n".join(blocks)


@dataclass(frozen=True)
class Desk:
    """Where one editor session works."""

    out: Path  # what is left when the session fails
    workspace: Path  # a copy of tests/editors/workspace
    environment: dict[str, str]  # has ``warpline`` on its PATH

    @property
    def script(self) -> Path:
        return self.workspace / "train.py"

    @property
    def hold(self) -> Path:
        """While this file exists the script waits before its first step."""
        return self.workspace / "downloading"

    def profile(self, script: str) -> None:
        """Make a run of a script of the workspace in a terminal."""
        command = ["warpline", "profile", "--python", sys.executable, script]
        made = subprocess.run(
            command, cwd=self.workspace, env=self.environment, capture_output=True, text=True
        )
        assert made.returncode == 0, made.stdout + made.stderr

    def in_library(self) -> tuple[Path, int]:
        """The costliest line of libraries below the costliest line of the newest run: file and number."""
        line = json.loads((self.runs()[-1] / "report.json").read_text())["lines"][0]
        entry = next(each for each in line["inside"] if each["file"] != line["file"])
        return Path(entry["file"]), entry["line"]

    def runs(self) -> list[Path]:
        """The runs that are finished and read, oldest first."""
        reports = (self.workspace / ".warpline" / "runs").glob("*/report.json")
        return sorted(report.parent for report in reports)

    def arguments(self) -> list[str]:
        """What the script was given in the newest run."""
        words: list[str] = json.loads((self.runs()[-1] / "report.json").read_text())["argv"]
        return words

    def costly(self) -> dict[int, str]:
        """The lines of the script that take at least 2 % of the newest run's step, with their text; the
        costliest first."""
        report = json.loads((self.runs()[-1] / "report.json").read_text())
        text = self.script.read_text().splitlines()
        least = 0.02 * report["steps"]["step_ms"]
        lines = [line for line in report["lines"] if line["file"] == str(self.script)]
        return {line["line"]: text[line["line"] - 1] for line in lines if line["step_ms"] >= least}

    def written(self, part: str) -> bool:
        """Whether ``part`` is in the script as it is on disk. Helix moves a file away while it writes it."""
        try:
            return part in self.script.read_text()
        except FileNotFoundError:
            return False

    def line(self, part: str) -> int:
        """The 1-based number of the first line of the script with ``part`` in it."""
        lines = self.script.read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if part in line)

    def targets(self) -> list[Path]:
        """The processes that run the script."""

        def runs_it(process: Path) -> bool:
            try:
                here = (process / "cwd").readlink() == self.workspace
                return here and b"/capture/runner/" in (process / "cmdline").read_bytes()
            except OSError:
                return False  # it ended meanwhile

        return [process for process in Path("/proc").glob("[0-9]*") if runs_it(process)]
