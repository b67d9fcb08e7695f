"""`warpline tune` on the examples: what it reaches, in how long, beside a hand edit and the field's reports.

    python benchmarks/tune.py [--budget 300] [--json FILE] [NAME...]
    python benchmarks/tune.py --programs FILE [NAME...]

The hand edit is `fixed.py` beside each example's `slow.py`. It, the plain script and the patch that ``tune``
wrote are timed without Warpline (``bets/beats.py``), one after the other; "of it" is the patch's gain by the
hand edit's. A row is printed as soon as its example is done; ``--json`` is written anew with each.

``--programs``: other people's programs, which lie elsewhere, as JSON; paths are relative to FILE:
``{NAME: {"script": "train.py", "argv": ["--epochs", "1"], "expert": {"train.py": "edited/train.py"},
"samples": 1.0}}``. ``expert`` names the edited text of each file that an expert changed, and ``samples`` how
many times as many samples a step of the edited script has.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from bets import over  # beside this file

CLOCK = ROOT / "benchmarks/bets/beats.py"
#: What a copy of a program has links to, if it is a folder: data, and no sources.
SOURCES = {".py", ".json", ".toml", ".yaml", ".yml", ".cfg"}
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
    *("by the clock", "by hand", "of it", "reported", "seconds"),
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
    """One program. ``seconds``: of the command ``tune``, profile and proof included. ``plain_ms``,
    ``tuned_ms``, ``hand_ms``: a step by the independent clock, the last one per sample of the plain one's."""

    name: str
    best: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    loss_drift: float | None = None
    plain_ms: float | None = None
    tuned_ms: float | None = None
    hand_ms: float | None = None
    seconds: float = 0.0
    problem: str = ""
    candidates: list[dict[str, object]] | None = None
    patch: str = ""


def main() -> int:
    options = arguments()
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}", flush=True)
    rows: list[Row] = []
    for program in programs(options):
        with copies(program) as (plain, changed, edited):
            rows.append(tuned(program, changed, options))
            if not options.no_hand:
                row, samples = rows[-1], program.samples if program.edited else 1.0
                row.plain_ms = clocked(plain, program, options)
                row.tuned_ms = clocked(changed, program, options) if row.speedup else None
                hand = clocked(edited, program, options) if program.edited else None
                row.hand_ms = hand / samples if hand else None
        show(rows[-1])
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


@contextlib.contextmanager
def copies(program: Program) -> Iterator[list[Path]]:
    """The script in three copies of its folder, beside it: as it is, to be tuned, and the expert's."""
    folder, made = program.script.parent, list[Path]()
    try:
        for which in ("plain", "tuned", "hand"):
            to = Path(tempfile.mkdtemp(prefix=f"{folder.name}-{which}-", dir=folder.parent))
            made.append(to / program.script.name)
            copied(folder, to)
        for path, text in program.edited.items():
            (made[-1].parent / Path(path).relative_to(folder)).write_text(text, encoding="utf-8")
        yield made
    finally:
        for script in made:
            shutil.rmtree(script.parent, ignore_errors=True)


def copied(folder: Path, to: Path) -> None:
    """Sources are copied, and linked is what holds none, such as data."""
    for entry in folder.iterdir():
        if entry.name == ".warpline":
            continue
        if entry.is_dir() and any(entry.rglob("*.py")):
            (to / entry.name).mkdir()
            copied(entry, to / entry.name)
        elif entry.is_file() and entry.suffix in SOURCES:
            shutil.copy(entry, to / entry.name)
        else:
            (to / entry.name).symlink_to(entry)


def clocked(script: Path, program: Program, options: argparse.Namespace) -> float | None:
    """A step in ms, without Warpline. None, with the reason on stderr, where no steps could be timed."""
    process = subprocess.Popen(
        [sys.executable, str(CLOCK), str(options.window), str(script), *program.argv],
        cwd=script.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said, lines = b"", list[str]()
    with contextlib.suppress(subprocess.TimeoutExpired):
        said = process.communicate(b"\n", timeout=options.limit)[1]
    over(process)
    for line in said.decode(errors="replace").splitlines():
        _, brace, rest = line.partition('{"beats"')  # behind a progress bar
        lines.append(line)
        if brace and "ms" in (found := json.loads(brace + rest)):
            return float(found["ms"])
    print(f"{script}: not timed: {' / '.join(lines[-2:])[-300:]}", file=sys.stderr)
    return None


def tuned(program: Program, script: Path, options: argparse.Namespace) -> Row:
    """``script``: a copy, which is changed."""
    began = time.monotonic()
    path = os.pathsep.join(filter(None, (str(ROOT / "server"), os.environ.get("PYTHONPATH"))))
    words = [
        "--budget",
        str(options.budget),
        "--json",
        "-",
        "--write",
        *(["--progress-fd", "2"] if options.verbose else []),
    ]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "warpline", "tune", "--run-dir", folder),
                *(*words, str(script), *program.argv),
            ],
            cwd=script.parent,
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


def show(row: Row) -> None:
    cells = [row.name, row.best or row.problem, "", "", ""]
    if row.speedup is not None:
        drift = f"{row.loss_drift:.1g}" if row.loss_drift is not None else "not seen"
        cells[2:] = [f"{row.speedup:.2f}", f"{row.low:.2f} to {row.high:.2f}", drift]
    clock = row.plain_ms / row.tuned_ms if row.plain_ms and row.tuned_ms else None
    if clock and row.speedup and "small-batch" in row.best:  # a step has more samples: a power of two more
        clock *= 2 ** round(math.log2(row.speedup / clock))
    hand = row.plain_ms / row.hand_ms if row.plain_ms and row.hand_ms else None
    cells += [f"{gain:.2f}" if gain else "" for gain in (clock, hand)]
    cells.append(f"{100 * clock / hand:.0f} %" if clock and hand else "")
    cells.append(f"{REPORTED[row.name]:g}" if row.name in REPORTED else "")
    print(f"| {' | '.join([*cells, f'{row.seconds:.0f}'])} |", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--programs", type=Path, metavar="FILE", help="programs that lie elsewhere (JSON)")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds for each program (300)")
    parser.add_argument("--no-hand", action="store_true", help="time nothing beside tune")
    parser.add_argument("--window", type=float, default=5.0, help="seconds of steps by the clock (5)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one process (120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was tried here")
    parser.add_argument("--verbose", action="store_true", help="show progress and what the scripts print")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
