"""``measured.json`` of a run: the measurements of its findings, valid until the code changes.

A measurement belongs to the texts that it was made with: those of the files that the fix edits, and of the
finding's file. It is stale while one of them differs, and valid again when the change is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from warpline import runs
from warpline.measure.calibration import Miss
from warpline.measure.candidate import Texts, digest
from warpline.model.problem import Problem
from warpline.model.report import Finding, Measured

if TYPE_CHECKING:
    from warpline.measure.verdict import Outcome  # whose module brings all that measures

NAME = "measured.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One measurement of a finding's fix."""

    finding: str
    texts: dict[str, str]  # path -> digest of the plain text it was measured with
    changed: str  # Candidate.key
    baseline_step_ms: float
    step_ms: float | None
    measured: Measured | None
    kept: bool
    reason: str
    predicted: float | None = None  # the speed-up predicted before the measurement
    basis: str = "simulated"  # basis of that prediction


@dataclass(frozen=True, slots=True)
class Measurements:
    format: int = FORMAT
    entries: tuple[Entry, ...] = ()


def entry(outcome: Outcome, finding: Finding, texts: Texts) -> Entry:
    """The entry to store for ``outcome``, the measurement of ``finding``."""
    files = {*outcome.candidate.overlay, finding.file, finding.cause.file}
    return Entry(
        finding=finding.id,
        texts={file: _digest(file, texts) for file in sorted(files)},
        changed=outcome.candidate.key,
        baseline_step_ms=outcome.baseline_step_ms,
        step_ms=outcome.step_ms,
        measured=outcome.measured,
        kept=outcome.kept,
        reason=outcome.reason,
        predicted=finding.predicted.speedup if finding.predicted else None,
        basis=finding.predicted.basis if finding.predicted else "simulated",
    )


def load(run: Path) -> tuple[Entry, ...]:
    """All measurements of ``run``, stale ones included; () if there is no file, or it has another format."""
    if not (run / NAME).is_file():
        return ()
    try:
        found = runs.read(run, NAME, Measurements)
    except Problem:
        return ()
    return found.entries if found.format == FORMAT else ()


def add(run: Path, new: Entry) -> None:
    """Store ``new``. It replaces an earlier measurement of the same finding."""
    kept = tuple(old for old in load(run) if old.finding != new.finding)
    runs.write_json(run, NAME, Measurements(entries=(*kept, new)))


def fresh(run: Path, texts: Texts) -> dict[str, Entry]:
    """Finding id -> measurement, for those with unchanged code."""
    return {
        one.finding: one
        for one in load(run)
        if all(_digest(file, texts) == seen for file, seen in one.texts.items())
    }


def attach(run: Path, findings: Sequence[Finding], texts: Texts) -> tuple[Finding, ...]:
    """``findings`` with their valid measurements."""
    known = fresh(run, texts)
    return tuple(
        replace(one, measured=known[one.id].measured if one.id in known else None) for one in findings
    )


def errors(folder: Path) -> list[Miss]:
    """Past predictions with their measured gains, from the runs in ``folder``."""
    try:
        beside = sorted(folder.iterdir())
    except OSError:  # the folder may not be read
        return []
    return [
        Miss(one.basis, one.predicted, one.measured.speedup)
        for run in beside
        if runs.is_run(run)
        for one in load(run)
        if one.predicted and one.measured and one.measured.speedup > 0
    ]


def prediction_error(folder: Path) -> tuple[float, int] | None:
    """``(median relative error, count)`` of past predictions with a measurement, from the runs in
    ``folder``."""
    found = [abs(one.predicted / one.measured - 1) for one in errors(folder)]
    return (median(found), len(found)) if found else None


def _digest(file: str, texts: Texts) -> str:
    return digest([(file, texts(file) or "")])
