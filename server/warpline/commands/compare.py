"""Compare two runs line by line. Lines that moved or were edited between them are matched."""

from __future__ import annotations

import argparse

from warpline.commands import run_argument


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--top", type=int, metavar="N", help="lines to show (those that differ)")
    parser.add_argument(
        "before",
        nargs="?",
        metavar="BEFORE",
        help="a run folder or its name (the last one of AFTER's script)",
    )
    parser.add_argument("after", nargs="?", metavar="AFTER", help="the later run (the newest)")


def run(options: argparse.Namespace) -> int:
    after = run_argument.find(options.after)
    before = run_argument.find(options.before) if options.before else run_argument.previous(after)
    from warpline import pipeline, runs
    from warpline.terminal import compare as terminal
    from warpline.view.compare import compare

    comparison = compare(
        pipeline.report_of(before), pipeline.report_of(after), runs.sources(before), runs.sources(after)
    )
    terminal.show(comparison, before, after, options.top)
    return 0
