"""Write a run (the newest when RUN is left out) as one self-contained page."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpline.commands import output, run_argument


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", metavar="FILE", required=True, help="the page to write ('-': standard output)"
    )
    run_argument.configure(parser)


def run(options: argparse.Namespace) -> int:
    run_folder = run_argument.find(options.run)
    from warpline import pipeline
    from warpline.html.page import page

    report = pipeline.report_of(run_folder)
    text = page(report, pipeline.profile_of(run_folder), cwd=str(Path.cwd()))
    output.write_bytes(text.encode(), options.html)
    return 0
