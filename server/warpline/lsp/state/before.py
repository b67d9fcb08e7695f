"""The run that a newer one is compared with: of the same script, arguments, launcher and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpline import runs
from warpline.model.problem import Problem
from warpline.model.report import FORMAT, Report
from warpline.view import change
from warpline.view.lenses import function_totals

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Before:
    """The earlier run, as far as lenses need it. ``noise``: the noise of the comparison as a share; None:
    unknown."""

    run: Path
    step_ms: float
    functions: Mapping[tuple[str, str], float]
    noise: float | None


def before(
    report: Report, launcher: Sequence[str], noise: float | None, others: Sequence[Path]
) -> Before | None:
    """The newest of ``others`` (the newest first) that can be compared with a run that has this report and
    was started by ``launcher``."""
    for run in others:
        try:
            manifest = runs.manifest(run)
            if manifest.script != report.script or manifest.argv != report.argv:
                continue
            earlier = read_report(run)
        except Problem:
            continue
        if not change.comparable(earlier, report, (manifest.request.launcher, launcher)):
            both = change.together(change.noise(manifest.timed_ns), noise)
            return Before(run, earlier.steps.step_ms, function_totals(earlier.lines), both)
    return None


def read_report(run: Path) -> Report:
    """Raises Problem."""
    report = runs.read(run, REPORT, Report)
    if report.format != FORMAT:
        raise Problem(f"{run} has report format {report.format}; this Warpline reads {FORMAT}")
    return report
