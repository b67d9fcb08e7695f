"""A run (the newest when RUN is left out): by line, operator, kernel or memory; or one page (--html FILE)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import output, run_argument
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.html.compared import Against
    from warpline.model.tracks import Timeline


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write the page to FILE ('-': standard output)")
    output.views(parser)
    parser.add_argument(
        "--against", metavar="RUN", help="an earlier run to compare with: a run folder or its name"
    )
    run_argument.configure(parser)


def run(options: argparse.Namespace) -> int:
    run_folder = run_argument.find(options.run)
    before = run_argument.find(options.against) if options.against else None
    if before is not None and not options.html:
        raise Problem("--against is for the page (--html FILE); `warpline compare` prints two runs")
    from warpline import pipeline

    if not options.html:
        output.table(run_folder, pipeline.report_of(run_folder), options)
        return 0
    from warpline.html.page import page

    report, profile = pipeline.report_of(run_folder), pipeline.profile_of(run_folder)
    text = page(
        report,
        profile,
        _timeline(run_folder),
        _against(before, run_folder) if before is not None else None,
        pipeline.roofs_of(profile),
        pipeline.ranks_of(run_folder),
        cwd=str(Path.cwd()),
    )
    output.write_bytes(text.encode(), options.html)
    return 0


def _timeline(run: Path) -> Timeline | None:
    """None, and a line that says so, where the trace cannot be read any more: the rest is worth a page."""
    from warpline import pipeline

    try:
        return pipeline.timeline_of(run)
    except Problem as problem:
        print(f"warpline: the page has no timeline: {problem}", file=sys.stderr)
        return None


def _against(before: Path, after: Path) -> Against:
    from warpline import pipeline, runs
    from warpline.html.compared import Against
    from warpline.view.compare import compare

    old, new = pipeline.report_of(before), pipeline.report_of(after)
    return Against(before.name, old, compare(old, new, runs.sources(before), runs.sources(after)))
