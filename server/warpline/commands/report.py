"""A run (the newest when RUN is left out): by line, operator, kernel or memory; or one page (--html FILE)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from warpline.commands import output, run_argument
from warpline.model.problem import Problem


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
    from warpline.html.of_run import page_of

    text = page_of(
        run_folder, before, str(Path.cwd()), lambda line: print(f"warpline: {line}", file=sys.stderr)
    )
    output.write_bytes(text.encode(), options.html)
    if options.html != "-":
        print(f"wrote {options.html}: open it in a browser")
    return 0
