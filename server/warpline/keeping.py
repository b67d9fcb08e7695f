"""The list of a folder's runs, and which of them are kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from warpline import runs
from warpline.model.problem import Problem
from warpline.project import Settings
from warpline.wire.run import MANIFEST

_DAY_S = 86400.0
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Kept:
    """One run of a folder, as ``warpline runs`` lists it."""

    run: str  # the folder's name
    script: str  # absolute path; the module's name where one ran
    module: bool
    argv: tuple[str, ...]
    created_s: float  # unix time
    step_ms: float | None  # without the profiler; None where no report was made
    bytes: int  # all files of the folder

    @property
    def command(self) -> tuple[str, bool, tuple[str, ...]]:
        """What ran: the newest run of each is always kept."""
        return self.script, self.module, self.argv


class _Steps(msgspec.Struct):
    step_ms: float


class _Report(msgspec.Struct):
    steps: _Steps


def listed(folder: Path) -> list[Kept]:
    """The runs in ``folder``, the newest first. Folders that are no runs, or cannot be read, are left out."""
    found = []
    for path in folder.glob("*"):
        if path.is_symlink() or not runs.is_run(path):
            continue
        try:
            manifest = runs.manifest(path)
        except Problem:
            continue
        request = manifest.request
        script = request.target if request.module else manifest.script
        found.append(
            Kept(
                path.name, script, request.module, manifest.argv, manifest.created_ns / 1e9,
                _step_ms(path), size(path),
            )
        )  # fmt: skip
    return sorted(found, key=lambda run: (run.created_s, run.run), reverse=True)


def size(run: Path) -> int:
    """Bytes of all files below ``run``."""
    total = 0
    for path in run.rglob("*"):
        try:
            total += path.lstat().st_size if path.is_file() else 0
        except OSError:
            continue  # it went meanwhile
    return total


def superfluous(found: Sequence[Kept], settings: Settings, now_s: float) -> list[Kept]:
    """The runs in ``found`` (newest first) that the project's settings do not keep; the oldest last."""
    gone: list[Kept] = []
    seen, room = set(), 0.0
    for number, run in enumerate(found):
        newest = run.command not in seen
        seen.add(run.command)
        kept = (
            number - len(gone) < settings.keep_runs
            and now_s - run.created_s <= settings.keep_days * _DAY_S
            and room + run.bytes <= settings.keep_mb * _MB
        )
        if newest or kept:
            room += run.bytes
        else:
            gone.append(run)
    return gone


def prune(folder: Path, settings: Settings, now_s: float | None = None) -> list[Kept]:
    """Remove the runs of ``folder`` that the settings let go, and return them.

    What cannot be removed stays, and is not among them.
    """
    gone = []
    for run in superfluous(listed(folder), settings, time.time() if now_s is None else now_s):
        path = folder / run.run
        try:
            (path / MANIFEST).unlink()  # first: what is half removed is not a run
        except OSError:
            continue
        shutil.rmtree(path, ignore_errors=True)
        gone.append(run)
    return gone


def _step_ms(run: Path) -> float | None:
    try:
        return runs.read(run, "report.json", _Report).steps.step_ms
    except Problem:
        return None
