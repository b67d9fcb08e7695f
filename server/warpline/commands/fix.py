"""Show, apply or measure the fixes of the newest run of SCRIPT.

Fixes are applied one after the other, the largest saving first, each to the result of the previous one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import fix_selection, target
from warpline.commands.profile import seconds
from warpline.model.problem import Problem
from warpline.text import patch

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

    run_folder = fix_selection.folder_of(options)
    profile = pipeline.profile_of(run_folder)
    report = pipeline.report_of(run_folder)
    named = fix_selection.chosen(report.findings, options)
    planned = fix_selection.later(report, profile, options)
    found, left_out = fix_selection.selected(named, options, planned)
    for finding, why in left_out:
        _say(f"{_name(finding)}: skipped, {why}")
    for finding in planned:
        if finding in found:
            _say(f"{_name(finding)}: alone it would give no measurable gain now (see the plan)")
    made = together(profile, found, files.text_of)
    for skipped in made.skipped:
        _say(f"{_name(skipped.finding)}: not changed, {skipped.reason}")
    if not made.texts:
        _say("there is nothing to change")
    root = fix_selection.root_of(run_folder, profile.manifest.request.cwd)
    if options.diff:
        folder = _seen_from(made, root)
        if folder != Path.cwd():
            there = shlex.quote(str(folder))
            _say(f"the paths are relative to {folder}: apply it there (`patch -p1 -d {there}`)")
        sys.stdout.write(diff(made, folder))
        return 0
    return _write(made, root)


def diff(made: Together, folder: Path) -> str:
    """All changes as one unified diff, with paths relative to ``folder``."""
    from warpline.syntax import files

    return "".join(
        patch.written(path, files.text_of(path) or "", text, folder) for path, text in made.texts.items()
    )


def _seen_from(made: Together, root: Path) -> Path:
    """Where a patch can be applied: here, if all changed files are below; else in the project."""
    here = Path.cwd()
    return here if all(Path(path).is_relative_to(here) for path in made.texts) else root


def _write(made: Together, root: Path) -> int:
    from warpline.syntax import files

    failed = set()
    for path, text in made.texts.items():
        try:
            fix_selection.inside(path, root)
            files.write(files.read(path), text)
        except Problem as problem:
            failed.add(path)
            _say(str(problem))
    for change in made.changes:
        if not failed & {edit.file for edit in change.fix.edits}:
            print(f"{_name(change.finding)}: {change.fix.title}")
    return 0


def _name(finding: Finding) -> str:
    return f"{os.path.relpath(finding.file)}:{finding.line} {finding.rule}"


def _say(text: str) -> None:
    print(f"warpline: {text}", file=sys.stderr)
