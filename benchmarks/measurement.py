"""Does a measurement tell the truth? A planted slowdown and a change that changes nothing, many times each.

    python benchmarks/measurement.py [--repetitions 20] [--load 0] [--slowdown 5] [--seconds 3600 --log FILE]

The change that changes nothing adds a comment; the slowdown makes the script do that many percent more of
the same work. Each repetition times both, as ``fix --measure`` does with two fixes: its rounds share the
plain script. ``--load N`` keeps N other processes busy meanwhile; the machine's own load is noted beside each
row. All of it ends within ``--seconds``: each repetition gets an equal share of the time that is left, and
what it has seen by then counts. With ``--log`` each row is kept at once, and a later call goes on from there.

An interval is right if it holds the truth, 1 or what the slowdown makes of it; a single round gives none. A
slowdown is found if its whole interval lies below 1. It ends with status 1 when fewer than 19 of 20 intervals
of either kind are right.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline.measure.candidate import Candidate
from warpline.measure.contest import Contest, Outcome
from warpline.measure.pairs import QUICK
from warpline.model.problem import Problem
from warpline.wire.run import Request

SCRIPT = Path(__file__).parent / "workloads/steady.py"
BUSY = "while True: pass"
NOWHERE = Path(os.devnull)
SAME, SLOWER = "nothing", "slower"


def main() -> int:
    options = arguments()
    text = SCRIPT.read_text()
    more = re.sub(
        r"REPEATS = (\d+)", lambda found: f"REPEATS = {slowed(int(found[1]), options.slowdown)}", text
    )
    candidates = [
        Candidate((SLOWER,), f"{options.slowdown} % more work", {str(SCRIPT): more}),
        Candidate((SAME,), "a comment", {str(SCRIPT): text + "\n# nothing\n"}),
    ]
    request = Request(target=str(SCRIPT), cwd=str(SCRIPT.parent), python=options.python)
    print(f"{options.repetitions} repetitions, {options.load} busy processes beside them\n")
    print(
        "| change | ratio | 95 % interval | rounds | step ms | load | right |\n|---|---|---|---|---|---|---|"
    )
    rows = [json.loads(line) for line in options.log.read_text().splitlines()] if options.log.exists() else []
    for row in rows:
        print(row["text"], flush=True)
    ends = time.monotonic() + options.seconds
    with load(options.load):
        for at in range(len(rows) // len(candidates), options.repetitions):
            left = ends - time.monotonic()
            if left <= 0:
                break
            ends_at = time.monotonic() + left / (options.repetitions - at)
            for outcome in measured(request, candidates, ends_at):
                truth = 1.0 if outcome.candidate is candidates[1] else 1 / (1 + options.slowdown / 100)
                rows.append(shown(outcome, truth))
                if options.log != NOWHERE:
                    with options.log.open("a") as log:
                        log.write(json.dumps(rows[-1]) + "\n")
    return summary(rows, options.slowdown)


def summary(rows: list[dict[str, Any]], slowdown: float) -> int:
    """What the rows come to; the exit status."""
    good = bool(rows)
    for change in (SLOWER, SAME):
        mine = [row for row in rows if row["change"] == change]
        timed = [row for row in mine if row["ratio"] is not None]
        right = sum(row["right"] for row in mine)
        good = good and right >= 0.95 * len(mine)
        said = f"{slowdown:g} % more work" if change == SLOWER else "no change"
        print(f"\n{said}: {right} of {len(mine)} intervals hold the truth", end="")
        if timed:
            below, above = (sum(row[end] for row in timed) for end in ("below", "above"))
            ratios = [row["ratio"] for row in timed]
            width = median(row["high"] / row["low"] if row["low"] else math.inf for row in timed)
            print(
                f"; {below} lie below 1, {above} above; ratios {min(ratios):.3f} to {max(ratios):.3f}, "
                f"median {median(ratios):.3f}; median width {width:.3f}; "
                f"{min(row['rounds'] for row in timed)} to {max(row['rounds'] for row in timed)} rounds"
            )
    return 0 if good else 1


def measured(request: Request, candidates: list[Candidate], ends_at: float) -> list[Outcome]:
    """What is known of ``candidates`` at ``ends_at`` (``time.monotonic()``) at the latest."""
    contest = Contest(request, candidates, QUICK, deadline=ends_at if ends_at < math.inf else None)
    try:
        contest.run()
    except Problem as problem:
        print(problem, file=sys.stderr)
    return contest.outcomes()


def slowed(repeats: int, percent: float) -> int:
    return round(repeats * (1 + percent / 100))


def shown(outcome: Outcome, truth: float) -> dict[str, Any]:
    """Print one row: what was seen, and whether the interval holds ``truth``."""
    seen, busy = outcome.measured, os.getloadavg()[0]
    row: dict[str, Any] = {"change": outcome.candidate.fixes[0], "ratio": None, "right": False}
    if seen is None:
        row["text"] = f"| {outcome.candidate.title} | {outcome.reason} | | | | {busy:.1f} | no |"
    else:
        good = outcome.rounds > 1 and seen.low <= truth <= seen.high
        row |= {"ratio": seen.speedup, "low": seen.low, "high": seen.high, "rounds": outcome.rounds}
        row |= {"right": good, "below": seen.high < 1.0, "above": seen.low > 1.0, "load": busy}
        row["text"] = (
            f"| {outcome.candidate.title} | {seen.speedup:.3f} | {seen.low:.3f} to {seen.high:.3f} "
            f"| {outcome.rounds} | {outcome.baseline_step_ms:.1f} | {busy:.1f} | {'yes' if good else 'no'} |"
        )
    print(row["text"], flush=True)
    return row


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
