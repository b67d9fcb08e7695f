"""Two runs side by side, line by line. Lines that moved or were edited between them are found again."""

from __future__ import annotations

import argparse

from warpline.commands import run_argument


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--top", type=int, metavar="N", help="lines to show (those that differ)")
    parser.add_argument("before", metavar="RUN", help="a run folder or its name")
    parser.add_argument("after", metavar="RUN", help="the run to compare with it")


def run(options: argparse.Namespace) -> int:
    before, after = run_argument.find(options.before), run_argument.find(options.after)
    from warpline import pipeline, runs
    from warpline.terminal import compare as terminal
    from warpline.view.compare import compare

    comparison = compare(
        pipeline.report_of(before), pipeline.report_of(after), runs.sources(before), runs.sources(after)
    )
    terminal.show(comparison, before, after, options.top)
    return 0
