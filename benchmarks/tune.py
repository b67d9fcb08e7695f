"""`warpline tune` on the examples: what it reaches, in how long, beside a hand edit and the field's reports.

    python benchmarks/tune.py [--budget 300] [--json FILE] [NAME...]
    python benchmarks/tune.py --programs FILE [NAME...]

The hand edit is `fixed.py` beside each example's `slow.py`, timed against it in rounds of its own.
A row is printed as soon as its example is done; ``--json`` is written anew with each.

``--programs``: other people's programs, which lie elsewhere, as JSON; paths are relative to FILE:
``{NAME: {"script": "train.py", "argv": ["--epochs", "1"], "expert": {"train.py": "edited/train.py"},
"samples": 1.0}}``. ``expert`` names the edited text of each file that an expert changed, and ``samples`` how
many times as many samples a step of the edited script has.
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


@dataclass(frozen=True)
class Program:
    """``edited``: the expert's text of each file that was changed; empty where there is no such edit."""

    name: str
    script: Path
    argv: tuple[str, ...]
    edited: dict[str, str]
    samples: float


def programs(options: argparse.Namespace) -> list[Program]:
    """Those that are asked for: the examples, or those of ``--programs``."""
    if options.programs is None:
        return [example(name) for name in options.names or REPORTED]
    folder = options.programs.resolve().parent
    known = json.loads(options.programs.read_text(encoding="utf-8"))
    found = []
    for name, about in known.items():
        if not options.names or name in options.names:
            texts = {
                str(folder / file): (folder / edited).read_text(encoding="utf-8")
                for file, edited in about.get("expert", {}).items()
            }
            script, argv = folder / about["script"], tuple(about.get("argv", ()))
            found.append(Program(name, script, argv, texts, float(about.get("samples", 1.0))))
    return found


def example(name: str) -> Program:
    script, fixed = (ROOT / "examples" / name / file for file in ("slow.py", "fixed.py"))
    edited = {str(script): fixed.read_text(encoding="utf-8")} if fixed.exists() else {}
    return Program(name, script, (), edited, float(SAMPLES.get(name, 1.0)))


@dataclass
class Row:
    """One program. ``seconds``: of the command ``tune``, profile and proof included."""

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
    for program in programs(options):
        rows.append(tuned(program, options))
        if not options.no_hand and program.edited:
            rows[-1].by_hand = by_hand(program, rows[-1], options)
        show(rows[-1])
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


def tuned(program: Program, options: argparse.Namespace) -> Row:
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
            [
                *(sys.executable, "-m", "warpline", "tune", "--run-dir", folder),
                *(*words, str(program.script), *program.argv),
            ],
            cwd=program.script.parent,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=None if options.verbose else subprocess.DEVNULL,
            check=False,
        )
    row = Row(program.name, seconds=time.monotonic() - began)
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


def by_hand(program: Program, row: Row, options: argparse.Namespace) -> float | None:
    """The speed-up of the expert's edit over the plain script; None where it fails."""
    name = program.name
    plain_ms = next((one["step_ms"] for one in row.candidates or () if one["step_ms"]), None)
    edit = Pairs(Candidate(("by hand",), "by hand", program.edited, work=program.samples))
    request = Request(
        target=str(program.script),
        argv=program.argv,
        cwd=str(program.script.parent),
        python=sys.executable,
    )
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
    parser.add_argument("--programs", type=Path, metavar="FILE", help="programs that lie elsewhere (JSON)")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for each program (300)")
    parser.add_argument("--hand-rounds", type=int, default=2, help="rounds of slow.py and fixed.py (2)")
    parser.add_argument("--no-hand", action="store_true", help="do not time fixed.py")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was tried here")
    parser.add_argument("--verbose", action="store_true", help="show progress and what the scripts print")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
