"""Show, apply or measure the fixes of the newest run of SCRIPT.

Fixes are applied one after the other, the largest saving first, each to the result of the previous one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import target
from warpline.commands.profile import seconds
from warpline.model import units
from warpline.model.problem import Problem
from warpline.text import patch

PROJECT = ("pyproject.toml", "setup.py", ".git")
#: A prediction of less is none: the simulation's own error is as large (``simulate``).
GAINS = 1.01
#: From here on less memory is a gain as well (``measure/verdict.py``).
LIGHTER = 0.9

if TYPE_CHECKING:
    from warpline.diagnosis.together import Together
    from warpline.model.report import Finding


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline fix [options] (--diff | --write | --measure) (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument(
        "--rule", action="append", metavar="RULE", help=("only fixes of this rule (repeatable)")
    )
    parser.add_argument("--line", type=int, metavar="N", help="only the fixes at this line")
    parser.add_argument("--run", metavar="RUN", help="a run folder (the newest of SCRIPT)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--diff", action="store_true", help="show what would change")
    what.add_argument("--write", action="store_true", help="change the files")
    what.add_argument("--measure", action="store_true", help="time the script with and without each fix")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="include fixes without an expected gain")
    which.add_argument("--safe", action="store_true", help="only fixes that change no values")
    parser.add_argument("--json", metavar="FILE", help="with --measure: write the results as JSON")
    parser.add_argument(
        "--progress-fd", type=int, metavar="N", help="write progress to this descriptor as JSON lines"
    )
    parser.add_argument(
        "--budget", type=seconds, metavar="SECONDS", help=("with --measure: time limit for everything")
    )
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    if options.measure:
        from warpline.commands import fix_measure

        status: int = fix_measure.run(options)
        return status
    from warpline import pipeline
    from warpline.diagnosis.together import together
    from warpline.syntax import files

    run_folder = folder_of(options)
    profile = pipeline.profile_of(run_folder)
    found, left_out = selected(chosen(pipeline.report_of(run_folder).findings, options), options)
    for finding, why in left_out:
        _say(f"{_name(finding)}: skipped, {why}")
    made = together(profile, found, files.text_of)
    for skipped in made.skipped:
        _say(f"{_name(skipped.finding)}: not changed, {skipped.reason}")
    if not made.texts:
        _say("there is nothing to change")
    if options.diff:
        sys.stdout.write(diff(made))
        return 0
    return _write(made, root_of(run_folder, profile.manifest.request.cwd))


def selected(
    findings: Sequence[Finding], options: argparse.Namespace
) -> tuple[list[Finding], list[tuple[Finding, str]]]:
    """``(those to fix, the others with the reason)``: what is predicted or was measured to gain; with
    ``--all`` everything, with ``--safe`` what changes no values."""
    found: list[Finding] = []
    left: list[tuple[Finding, str]] = []
    for finding in findings:
        why = "" if options.all else _no_gain(finding)
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
        return f"measured {units.gain(seen.speedup)} ({seen.low:.2f} to {seen.high:.2f}); --all includes it"
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


def folder_of(options: argparse.Namespace) -> Path:
    """The run that the command speaks of. Raises Problem when there is none."""
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


def diff(made: Together) -> str:
    """All changes as one unified diff, paths as seen from here."""
    from warpline.syntax import files

    return "".join(patch.written(path, files.text_of(path) or "", text) for path, text in made.texts.items())


def _write(made: Together, root: Path) -> int:
    from warpline.syntax import files

    failed = set()
    for path, text in made.texts.items():
        try:
            inside(path, root)
            files.write(files.read(path), text)
        except Problem as problem:
            failed.add(path)
            _say(str(problem))
    for change in made.changes:
        if not failed & {edit.file for edit in change.fix.edits}:
            print(f"{_name(change.finding)}: {change.fix.title}")
    return 0


def inside(path: str, root: Path) -> None:
    """Raises Problem for a file that is not below ``root``, links resolved."""
    if not Path(path).resolve().is_relative_to(root):
        raise Problem(f"{path} is not below {root}, the project of the run, and was not changed")


def _name(finding: Finding) -> str:
    return f"{os.path.relpath(finding.file)}:{finding.line} {finding.rule}"


def _say(text: str) -> None:
    print(f"warpline: {text}", file=sys.stderr)
