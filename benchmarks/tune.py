"""`warpline tune` on the examples: what it reaches, in how long, beside a hand edit and the field's reports.

    python benchmarks/tune.py [--budget 300] [--json FILE] [NAME...]

The hand edit is `fixed.py` beside each example's `slow.py`, timed against it in rounds of its own.
A row is printed as soon as its example is done; ``--json`` is written anew with each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline.measure import contest
from warpline.measure.candidate import Candidate
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.rounds import play
from warpline.measure.timed import Processes
from warpline.model.problem import Problem
from warpline.wire.run import Request

#: What the cases' sources report on their machines (issue 6).
REPORTED = {
    "loader-without-workers": 1.59,
    "fp32-bert": 1.8,
    "transpose-kernel": 8.0,
    "layernorm-finetune": 1.22,
}
#: Samples in a step of ``fixed.py``, in steps of ``slow.py``; 1 where none stands.
SAMPLES = json.loads((ROOT / "examples/samples_per_step.json").read_text())
HEADINGS = (
    *("example", "best set", "measured", "95 % interval", "loss drift"),
    *("by hand", "of it", "reported", "seconds"),
)


@dataclass
class Row:
    """One example. ``seconds``: of the command ``tune``, profile and proof included."""

    name: str
    best: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    loss_drift: float | None = None
    by_hand: float | None = None
    seconds: float = 0.0
    problem: str = ""
    candidates: list[dict[str, object]] | None = None
    patch: str = ""


def main() -> int:
    options = arguments()
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}", flush=True)
    rows: list[Row] = []
    for name in options.names or REPORTED:
        rows.append(tuned(name, options))
        if not options.no_hand:
            rows[-1].by_hand = by_hand(name, rows[-1], options)
        show(rows[-1])
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


def tuned(name: str, options: argparse.Namespace) -> Row:
    script = ROOT / "examples" / name / "slow.py"
    began = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    words = [
        "--budget",
        str(options.budget),
        "--json",
        "-",
        *(["--progress-fd", "2"] if options.verbose else []),
    ]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "warpline", "tune", "--run-dir", folder, *words, str(script)],
            cwd=script.parent,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=None if options.verbose else subprocess.DEVNULL,
            check=False,
        )
    row = Row(name, seconds=time.monotonic() - began)
    if done.returncode:
        row.problem = f"exit status {done.returncode}"
        return row
    found = json.loads(done.stdout)
    row.candidates = found["candidates"]
    row.patch = found["best"]["patch"]
    kept = [one for one in found["candidates"] if one["kept"]]
    if not kept:
        row.problem = f"nothing proven ({len(found['candidates'])} tried)"
        return row
    best = max(kept, key=lambda one: one["speedup"])
    row.best = ", ".join(word.partition("@")[0] for word in best["fixes"])
    row.speedup, row.low, row.high = best["speedup"], best["low"], best["high"]
    row.loss_drift = best["loss_drift"]
    return row


def by_hand(name: str, row: Row, options: argparse.Namespace) -> float | None:
    """The speed-up of ``fixed.py`` over ``slow.py``; None where it is not there or fails."""
    slow, fixed = (ROOT / "examples" / name / file for file in ("slow.py", "fixed.py"))
    if not fixed.exists():
        return None
    plain_ms = next((one["step_ms"] for one in row.candidates or () if one["step_ms"]), None)
    edit = Pairs(
        Candidate(("by hand",), "by hand", {str(slow): fixed.read_text()}, work=SAMPLES.get(name, 1.0))
    )
    request = Request(target=str(slow), cwd=str(slow.parent), python=sys.executable)
    timer = Processes(plain_ms if isinstance(plain_ms, float) else None)
    try:
        timer(request, {}, Limits().run_s, None)  # the caches are warm, and slices possible
        play(request, [edit], range(options.hand_rounds), limits=Limits(), timer=timer)
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return None
    found = contest.outcome(edit, Limits(first=options.hand_rounds)).measured
    if found is None:
        print(f"{name}, by hand: {edit.failure}", file=sys.stderr)
    return found.speedup if found else None


def show(row: Row) -> None:
    cells = [row.name, row.best or row.problem, "", "", ""]
    if row.speedup is not None:
        drift = f"{row.loss_drift:.1g}" if row.loss_drift is not None else "not seen"
        cells[2:] = [f"{row.speedup:.2f}", f"{row.low:.2f} to {row.high:.2f}", drift]
    cells.append(f"{row.by_hand:.2f}" if row.by_hand else "")
    cells.append(f"{100 * row.speedup / row.by_hand:.0f} %" if row.by_hand and row.speedup else "")
    cells.append(f"{REPORTED[row.name]:g}" if row.name in REPORTED else "")
    print(f"| {' | '.join([*cells, f'{row.seconds:.0f}'])} |", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for each example (300)")
    parser.add_argument("--hand-rounds", type=int, default=2, help="rounds of slow.py and fixed.py (2)")
    parser.add_argument("--no-hand", action="store_true", help="do not time fixed.py")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was tried here")
    parser.add_argument("--verbose", action="store_true", help="show progress and what the scripts print")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
