"""Scripts as a user would write them, run through the real capture."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from warpline import runs
from warpline.capture import launch, probe
from warpline.wire.messages import Progress
from warpline.wire.run import Locations, Manifest, Request

SCRIPTS = Path(__file__).parent / "scripts"
PYTHONS = os.environ.get("WARPLINE_TEST_PYTHONS", sys.executable).split(os.pathsep)
#: So that a hanging script fails its own test and not the whole suite.
LIMIT_S = 200.0


def request(script: Path, python: str = sys.executable, **more: object) -> Request:
    plain = Request(
        target=str(script),
        cwd=str(script.parent),
        python=python,
        environment={"OMP_NUM_THREADS": "1"},
        timeout_s=LIMIT_S,
        steps=3,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    script = folder / name
    script.write_text(text, encoding="utf-8")
    return script


class Captured:
    """A run with all that a test wants to ask of it.

    Without the window in which lines are sampled, unless ``sampled``: it is longer than all others together.
    """

    def __init__(self, asked: Request, folder: Path, *, sampled: bool = False) -> None:
        self.progress: list[Progress] = []
        self.pauses: list[tuple[Path, int]] = []
        log = (folder / "output.txt").open("w+b")
        with log, pytest.MonkeyPatch.context() as patch:
            if not sampled:
                patch.setattr(probe, "sampler", lambda: "")
            self.run = launch.capture(
                asked,
                folder / "run",
                self.progress.append,
                on_pause=lambda path, written: self.pauses.append((path, written)),
                output=log.fileno(),
            )
        self.output = (folder / "output.txt").read_text(encoding="utf-8")
        self.manifest: Manifest = runs.manifest(self.run)
        self.facts = runs.facts(self.run)

    def lines(self) -> dict[tuple[str, int], int]:
        """``(file name, line)`` -> how often it was reached within the captured steps."""
        table = runs.read(self.run, "locations.json", Locations)
        pairs = np.fromfile(self.run / "lines.bin", dtype=np.int64).reshape(-1, 2)
        begin, end = self.manifest.captured[0][0], self.manifest.captured[-1][1]
        found: dict[tuple[str, int], int] = {}
        for time, packed in pairs.tolist():
            file, line, _ = table.locations[packed & 0x7FFFFFFF]
            if begin <= time < end and file >= 0:
                key = (Path(table.files[file]).name, line)
                found[key] = found.get(key, 0) + 1
        return found


def left_behind(mark: str) -> list[int]:
    """Living processes with ``mark`` in their environment (the tests put one there)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and mark.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
