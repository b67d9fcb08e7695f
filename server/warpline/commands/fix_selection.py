"""Selects the run and the fixes for ``fix`` and ``tune``, and the files that they may write."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import target
from warpline.model import units
from warpline.model.problem import Problem

PROJECT = ("pyproject.toml", "setup.py", ".git")
#: A prediction of less is none: the simulation's own error is as large (``simulate``).
GAINS = 1.01
#: From here on less memory is a gain as well (``measure/verdict.py``).
LIGHTER = 0.9

if TYPE_CHECKING:
    from warpline.model.profile import Profile
    from warpline.model.report import Finding, Report


def folder_of(options: argparse.Namespace) -> Path:
    """The run that the command refers to. Raises Problem when there is none."""
    from warpline import runs
    from warpline.commands import run_argument

    if options.run:
        return run_argument.find(options.run)
    return run_argument.newest_of(target.request(options), runs.nearest(Path.cwd()))


def chosen(findings: Sequence[Finding], options: argparse.Namespace) -> list[Finding]:
    """The findings that ``--rule`` and ``--line`` name. Raises Problem for a rule there is not."""
    from warpline.rules import names

    for rule in options.rule or ():
        if rule not in names():
            raise Problem(f"there is no rule {rule}; 'warpline rules' lists them.")
    found = [finding for finding in findings if not options.rule or finding.rule in options.rule]
    if options.line is not None:
        found = [f for f in found if options.line in (f.line, f.cause.line)]
    return found


def later(report: Report, profile: Profile, options: argparse.Namespace) -> list[Finding]:
    """What ``--rule`` and ``--line`` name, or ``--all``, and only the plan has, with its fixes: by itself it
    would give no measurable gain now."""
    from warpline.diagnosis.recompute import fixes
    from warpline.model.report import Finding, SourceLine
    from warpline.syntax import files

    found = {finding.id for finding in report.findings}
    steps = report.plan.steps if report.plan is not None else ()
    named = [
        Finding(
            step.finding, step.rule, "hint", step.file, step.line, SourceLine(step.file, step.line), "", ()
        )
        for step in steps
        if step.finding not in found
        and (options.all or options.rule or options.line is not None)
        and (not options.rule or step.rule in options.rule)
        and options.line in (None, step.line)
    ]
    return [replace(one, fixes=fixes(profile, one, files.text_of)) for one in named]


def selected(
    findings: Sequence[Finding], options: argparse.Namespace, planned: Sequence[Finding] = ()
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """``(those to fix, the others with the reason)``: what is predicted or was measured to gain, and what is
    ``planned``; with ``--all`` everything, with ``--safe`` what changes no values."""
    found: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    for finding in (*findings, *planned):
        why = "" if options.all or finding in planned else _no_gain(finding)
        offered = [fix for fix in finding.fixes if fix.edits and fix.applicability != "display"]
        if options.safe and offered and offered[0].applicability != "safe":
            why = "it may change values (--safe)"
        if why:
            left.append((finding, why))
        else:
            found.append(finding)
    return found, left


def _no_gain(finding: Finding) -> str:
    """Why a fix is not expected to gain; empty where it is. What was measured counts before a prediction."""
    if not any(fix.edits for fix in finding.fixes):
        return ""  # said elsewhere
    seen, expected = finding.measured, finding.predicted
    if seen is not None:
        lighter = seen.memory_ratio is not None and seen.memory_ratio <= LIGHTER and seen.high >= 1.0
        if seen.low > 1.0 or lighter:
            return ""
        return f"measured: {units.measured(seen.speedup, seen.low, seen.high)}; --all includes it"
    if expected is not None and expected.speedup >= GAINS:
        return ""
    return "no predicted gain; --measure times it, --all includes it"


def root_of(run_folder: Path, cwd: str) -> Path:
    """The project that the run was made in: the folder with ``.warpline`` (else where the script was
    started), or the nearest one above it that says it is a project."""
    runs = run_folder.absolute().parent
    kept_in = runs.parent.parent if runs.parent.name == ".warpline" else Path(cwd or Path.cwd())
    made_in = kept_in.resolve()
    for folder in (made_in, *made_in.parents):
        if any((folder / mark).exists() for mark in PROJECT):
            return folder
    return made_in


def inside(path: str, root: Path) -> None:
    """Raises Problem for a file that is not below ``root``, links resolved."""
    if not Path(path).resolve().is_relative_to(root):
        raise Problem(f"{path} is not below {root}, the project of the run, and was not changed")
