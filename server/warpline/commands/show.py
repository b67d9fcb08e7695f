"""Print an earlier run again: RUN, or the newest run of this folder."""

from __future__ import annotations

import argparse

from warpline.commands import output, run_argument


def configure(parser: argparse.ArgumentParser) -> None:
    output.configure(parser)
    run_argument.configure(parser)


def run(options: argparse.Namespace) -> int:
    run_folder = run_argument.find(options.run)
    from warpline import pipeline

    output.write(run_folder, pipeline.report_of(run_folder), options)
    return 0
