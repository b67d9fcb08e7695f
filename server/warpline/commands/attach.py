"""Sample the lines of a running Python process, without a restart (Linux).

Shows the share of the time that the main thread spends at each line, waits included. With a counter in the
script's loop, or in Python 3.14, also the time a step. It does not measure operators, kernels and memory: use
`warpline profile` for those.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands.profile import number, seconds
from warpline.model.problem import Problem
from warpline.text.lines import lines_of

if TYPE_CHECKING:
    from warpline.capture.attach import Attached

_RATES = 3  # shown at most


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pid", type=number(1), metavar="PID", help="the process")
    parser.add_argument("--seconds", type=seconds, default=5.0, metavar="N", help=("how long to sample (5)"))
    parser.add_argument(
        "--read-only", action="store_true", help="only read its memory; do not have it time its steps (3.14)"
    )
    parser.add_argument("--top", type=number(1), default=20, metavar="N", help="lines to show (20)")


def run(options: argparse.Namespace) -> int:
    if not sys.platform.startswith("linux"):
        raise Problem("attach works on Linux only")
    from warpline.capture.attach import attach
    from warpline.view import text, units

    def cost(share: float) -> str:
        return f"{units.percent(share):>7}" + (f"  {units.ms(share * turn_ms):>8}" if turn_ms else "")

    found = attach(options.pid, options.seconds, read_only=options.read_only)
    if not found.total:
        raise Problem(f"process {options.pid} has no Python main thread to sample", 1)
    print(f"{found.total} samples of the main thread of process {options.pid}, including waits")
    turn_ms = _rates(found, options.seconds)
    shown = found.lines[: options.top]
    places = [f"{text.short_path(file, str(Path.cwd()))}:{line}" for file, line, _ in shown]
    width = max(map(len, places), default=0)
    for place, (file, line, count) in zip(places, shown, strict=True):
        source = text.printable(_source(file, line))
        print(f"{cost(count / found.total)}  {place:<{width}}  {source}".rstrip())
    rest = found.total - sum(count for *_, count in found.lines[: options.top])
    if rest:
        print(f"{cost(rest / found.total)}  elsewhere")
    if not found.steps and not found.counters:
        print("The time of a step is unknown: no local variable was seen to count at least 20 of them.")
    print("Operators, kernels and memory are not measured; warpline profile measures them.")
    return 0


def _rates(found: Attached, seconds: float) -> float:
    """Print how often the optimizers step, or else what counts the iterations of a loop. Returns the time of
    one step or iteration in milliseconds; 0 if unknown."""
    from warpline.view import text, units

    for step in found.steps[:_RATES]:
        name, times = text.printable(step.name), f"{step.turns} times, at most {units.ms(step.longest_ms)}"
        print(f"{name} steps every {units.ms(step.turn_ms)} ({times})")
    if found.steps:
        first = found.steps[0]
        if first.fills(seconds):
            print(f"Times are per step of {text.printable(first.name)}.")
            return first.turn_ms
        print(f"It stepped in {units.ms(first.turns * first.turn_ms)} of {seconds:g} s: no times per step.")
        return 0.0
    for one in found.counters[:_RATES]:
        place = text.short_path(one.file, str(Path.cwd()))
        grew = f"{one.name} of {one.function} ({place}) grew by {one.growth} every {units.ms(one.turn_ms)}"
        print(text.printable(f"{grew} ({one.turns} times)"))
    if not found.counters:
        return 0.0
    print(f"Times are per iteration of the loop that counts {text.printable(found.counters[0].name)}.")
    return found.counters[0].turn_ms


def _source(file: str, line: int) -> str:
    """The line as the file has it now; empty where it cannot be read (the process may see other paths)."""
    from warpline.syntax.files import text_of

    lines = lines_of(text_of(file) or "")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
