"""Run SCRIPT like `python SCRIPT ARGS...`, measure a window of its steps, print the cost of each line.

After the window the script is stopped as by Ctrl-C, unless --whole-run is given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from warpline.commands import output, target
from warpline.model.report import Report


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline profile [options] (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument("--steps", type=number(1), metavar="N", help="steps to capture (5)")
    parser.add_argument("--warmup", type=number(0), metavar="N", help="warm-up steps (until times settle)")
    parser.add_argument(
        "--loop",
        metavar="[FILE:]LINE",
        help="a step is one iteration of the loop at this line (docs/how-it-works.md says how one is chosen)",
    )
    parser.add_argument("--whole-run", action="store_true", help="let the script run to its end")
    parser.add_argument(
        "--every",
        type=number(1),
        metavar="N",
        help="let the script run to its end, and time a few steps of every N (docs/trends.md)",
    )
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="give up after this long (never)")
    parser.add_argument("--nvtx", action="store_true", help="also write NVTX ranges named by step and line")
    parser.add_argument(
        "--peaks",
        action="store_true",
        help="measure the device's peak rates (half a second), once per device",
    )
    parser.add_argument(
        "--probe",
        type=seconds_or_none,
        metavar="SECONDS",
        help="time limit for trying replacements on the recorded shapes (10; 0: none); compiling may take "
        "three times as long on top",
    )
    parser.add_argument("--run-dir", metavar="DIR", help="where run folders go (.warpline/runs)")
    parser.add_argument(
        "--progress-fd", type=number(0), metavar="N", help="write progress to this descriptor as JSON lines"
    )
    output.configure(parser)
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    request = target.with_window(target.request(options), options)
    output.check(options)
    from warpline import pipeline
    from warpline.terminal import progress

    with progress.shown(options.progress_fd) as shown:

        def write(run: Path, report: Report) -> None:
            shown.clear()
            output.write(run, report, options)

        pipeline.profile(
            request,
            folder=Path(options.run_dir).absolute() if options.run_dir else None,
            on_progress=shown.update,
            on_report=write,  # as soon as there is one, while the script may still be ending
            stdin=0 if sys.stdin else None,
        )
    return 0


def number(least: int) -> Callable[[str], int]:
    """An argparse type: a whole number of at least ``least``."""

    def whole(text: str) -> int:
        value = int(text) if text.isdecimal() else -1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return value

    return whole


def seconds_or_none(text: str) -> float:
    """An argparse type: a time, or 0."""
    return 0.0 if text == "0" else seconds(text)


def seconds(text: str) -> float:
    """An argparse type: a time above zero."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
