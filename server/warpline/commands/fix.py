"""The quick fixes of the newest run of SCRIPT: shown as a diff, written, or tried and timed.

Fixes are made one after the other, what saves most first, each on the text that the one before left.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import target
from warpline.commands.profile import seconds
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.diagnosis.together import Together
    from warpline.model.report import Finding


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline fix [options] (--diff | --write | --measure) (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument("--rule", action="append", metavar="RULE", help="only this rule's (repeatable)")
    parser.add_argument("--line", type=int, metavar="N", help="only those at this line")
    parser.add_argument("--run", metavar="RUN", help="a run folder (the newest of SCRIPT)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--diff", action="store_true", help="show what would change")
    what.add_argument("--write", action="store_true", help="change the files")
    what.add_argument("--measure", action="store_true", help="try each on the running script and time it")
    parser.add_argument("--json", metavar="FILE", help="with --measure: write the results as JSON")
    parser.add_argument(
        "--progress-fd", type=int, metavar="N", help="write progress to this descriptor as JSON lines"
    )
    parser.add_argument("--budget", type=seconds, metavar="SECONDS", help="with --measure: for all of it")
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    if options.measure:
        from warpline.commands import fix_measure

        status: int = fix_measure.run(options)
        return status
    from warpline import pipeline
    from warpline.diagnosis import files
    from warpline.diagnosis.together import together

    run_folder = folder_of(options)
    profile = pipeline.profile_of(run_folder)
    found = chosen(pipeline.report_of(run_folder).findings, options)
    made = together(profile, found, files.text_of)
    for skipped in made.skipped:
        _say(f"{_name(skipped.finding)}: not changed, {skipped.reason}")
    if not made.texts:
        _say("there is nothing to change")
    if options.diff:
        sys.stdout.write(diff(made))
        return 0
    return _write(made)


def folder_of(options: argparse.Namespace) -> Path:
    """The run that the command speaks of. Raises Problem when there is none."""
    from warpline import runs
    from warpline.commands import run_argument

    if options.run:
        return run_argument.find(options.run)
    return run_argument.newest_of(target.request(options), runs.nearest(Path.cwd()))


def chosen(findings: Sequence[Finding], options: argparse.Namespace) -> list[Finding]:
    """The findings that ``--rule`` and ``--line`` name. Raises Problem for a rule there is not."""
    from warpline.rulekit.page import names

    for rule in options.rule or ():
        if rule not in names():
            raise Problem(f"there is no rule {rule}; 'warpline rules' lists them.")
    found = [finding for finding in findings if not options.rule or finding.rule in options.rule]
    if options.line is not None:
        found = [f for f in found if options.line in (f.line, f.cause.line)]
    return found


def diff(made: Together) -> str:
    """All changes as one unified diff, paths as seen from here."""
    from warpline.diagnosis import files

    parts: list[str] = []
    for path, text in made.texts.items():
        name = os.path.relpath(path)
        before = (files.text_of(path) or "").splitlines(keepends=True)
        end = "\t" if " " in name else ""  # where the name ends, for patch
        names = f"a/{name}{end}", f"b/{name}{end}"
        parts += difflib.unified_diff(before, text.splitlines(keepends=True), *names)
    return "".join(
        part if part.endswith("\n") else f"{part}\n\\ No newline at end of file\n" for part in parts
    )


def _write(made: Together) -> int:
    from warpline.diagnosis import files

    failed = set()
    for path, text in made.texts.items():
        try:
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
