"""Does a measurement tell the truth? A change that changes nothing, many times, and a planted slowdown.

    python benchmarks/measurement.py [--repetitions 20] [--load 0] [--slowdown 5] [--seconds 450 --log FILE]

The change that changes nothing adds a comment; the slowdown, measured first, makes the script do that
many percent more of the same work. ``--load N`` keeps N other processes busy meanwhile. All of it ends
within ``--seconds``: each measurement gets an equal share of the time that is left (the slowdown two), and
what it has seen by then counts. With ``--log`` each row is kept at once, and a later call goes on from there.
It ends with status 1 when fewer than 19 of 20 intervals hold 1, or the slowdown is not found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline.measure import Candidate, Outcome
from warpline.measure.contest import Contest
from warpline.model.problem import Problem
from warpline.wire.run import Request

SCRIPT = Path(__file__).parent / "workloads/steady.py"
BUSY = "while True: pass"
NOWHERE = Path(os.devnull)


def main() -> int:
    options = arguments()
    text = SCRIPT.read_text()
    more = re.sub(
        r"REPEATS = (\d+)", lambda found: f"REPEATS = {slowed(int(found[1]), options.slowdown)}", text
    )
    same = Candidate(("nothing",), "a comment", {str(SCRIPT): text + "\n# nothing\n"})
    slower = Candidate(("slower",), f"{options.slowdown} % more work", {str(SCRIPT): more})
    request = Request(target=str(SCRIPT), cwd=str(SCRIPT.parent), python=options.python)
    print(f"{options.repetitions} repetitions, {options.load} busy processes beside them\n")
    print("| change | ratio | 95 % interval | rounds | right |\n|---|---|---|---|---|", flush=True)
    rows = [json.loads(line) for line in options.log.read_text().splitlines()] if options.log.exists() else []
    for row in rows:
        print(row["text"], flush=True)
    ends = time.monotonic() + options.seconds
    with load(options.load):
        for at in range(len(rows), 1 + options.repetitions):
            left, shares = ends - time.monotonic(), 1 + options.repetitions - at + (at == 0)
            if left <= 0:
                break
            candidate = same if at else slower
            ends_at = time.monotonic() + left / shares * (1 if at else 2)
            rows.append(shown(measured(request, candidate, ends_at), holds if at else below))
            if options.log != NOWHERE:
                with options.log.open("a") as log:
                    log.write(json.dumps(rows[-1]) + "\n")
    found, held = bool(rows and rows[0]["right"]), sum(row["right"] for row in rows[1:])
    print(f"\n{held} of {len(rows[1:])} intervals of no change hold 1; ", end="")
    print(f"the slowdown of {options.slowdown} % was {'found' if found else 'not found'}")
    if len(rows) <= options.repetitions:
        print(f"the time was over: {1 + options.repetitions - len(rows)} measurements were not begun")
    return 0 if rows[1:] and held >= 0.95 * len(rows[1:]) and found else 1


def measured(request: Request, candidate: Candidate, ends_at: float) -> Outcome:
    """What is known of ``candidate`` at ``ends_at`` (``time.monotonic()``) at the latest."""
    contest = Contest(request, [candidate], deadline=ends_at if ends_at < math.inf else None)
    try:
        contest.run()
    except Problem as problem:
        print(f"{candidate.title}: {problem}", file=sys.stderr)
    return contest.outcomes()[0]


def slowed(repeats: int, percent: float) -> int:
    return round(repeats * (1 + percent / 100))


def holds(low: float, high: float) -> bool:
    return low <= 1.0 <= high


def below(low: float, high: float) -> bool:
    return high < 1.0


def shown(outcome: Outcome, right: Callable[[float, float], bool]) -> dict[str, Any]:
    """Print one row; its ``text``, and whether the interval is ``right``."""
    seen = outcome.measured
    if seen is None:
        text = f"| {outcome.candidate.title} | {outcome.reason} | | | no |"
        print(text, flush=True)
        return {"text": text, "right": False}
    good = right(seen.low, seen.high)
    interval = f"{seen.low:.3f} to {seen.high:.3f}"
    row = (
        outcome.candidate.title,
        f"{seen.speedup:.3f}",
        interval,
        str(outcome.rounds),
        "yes" if good else "no",
    )
    text = f"| {' | '.join(row)} |"
    print(text, flush=True)
    return {"text": text, "right": good}


@contextmanager
def load(count: int) -> Iterator[None]:
    """``count`` processes that never rest."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--slowdown", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all of it")
    parser.add_argument("--log", type=Path, default=NOWHERE, metavar="FILE", help="rows so far")
    parser.add_argument("--python", default=sys.executable)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
