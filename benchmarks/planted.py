"""Programs in unusual styles, with sleeps planted in them: does each stand at its line, with its time?

    python benchmarks/planted.py [--python PATH] [--only NAMES] [--tries 2]

A line of ``benchmarks/planted/*.py`` that ends in ``# = 4`` sleeps 4 ms in a step: that is arithmetic.
On a busy machine a sleep takes longer than it should, so ``time.sleep`` is timed as well (by a
``sitecustomize`` of ours), and the line's 4 ms grow as its sleeps did. It passes when the report says so
within 10 % of it or 2 % of the step. No other line may have more than the larger of 1.5 ms and 15 % of the
step (what torch does in these programs takes less). A program that fails is profiled once more where there
are tries left: a sleep of the machine's is no fault of ours. Exit status 1 when a line fails in all tries.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "planted"
PLANTED = re.compile(r"# = ([0-9.]+)$")
OF_LINE, OF_STEP = 0.10, 0.02
OTHERS_MS, OTHERS_OF_STEP = 1.5, 0.15
TIMEOUT_S = 240
#: Times each sleep, by the line that calls for it: asked for, and taken.
SLEEPS = """
import atexit, json, os, sys, time
sleep, clock, seen, owner = time.sleep, time.perf_counter, {}, os.getpid()
def timed(seconds):
    begin = clock()
    sleep(seconds)
    took = clock() - begin
    frame = sys._getframe(1)
    of = seen.setdefault((frame.f_code.co_filename, frame.f_lineno), [0.0, []])
    of[0] = seconds
    of[1].append(took)
def tell():
    if seen and os.getpid() == owner:
        rows = [(os.path.basename(file), line, asked, took) for (file, line), (asked, took) in seen.items()]
        with open(os.environ["SLEEPS"], "w") as file:
            json.dump(rows, file)
time.sleep = timed
atexit.register(tell)
"""


def planted() -> dict[tuple[str, int], float]:
    """Milliseconds a step by file name and line."""
    found = {}
    for file in sorted(HERE.iterdir()):
        if file.suffix not in {".py", ".txt"}:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if match := PLANTED.search(line):
                found[file.name, number] = float(match[1])
    return found


def files_of(script: Path) -> set[str]:
    return {script.name, f"part_of_{script.stem}.txt"}


def profiled(
    script: Path, options: argparse.Namespace
) -> tuple[dict[str, Any], dict[tuple[str, int], float]]:
    """The JSON report; and how many times longer the sleeps of each line were than they should have been.
    Raises RuntimeError, with what the command said."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "sitecustomize.py").write_text(SLEEPS, encoding="utf-8")
        sleeps = Path(place, "sleeps.json")
        path = os.pathsep.join([place, os.environ.get("PYTHONPATH", str(HERE.parents[1] / "server"))])
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path, "SLEEPS": str(sleeps)}
        report = Path(place) / "report.json"
        command = [sys.executable, "-m", "warpline", "profile", "--python", options.python]
        command += ["--probe", "0", "--json", str(report), "--run-dir", str(Path(place) / "run"), str(script)]
        done = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-800:]}")
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        rows = json.loads(sleeps.read_text(encoding="utf-8"))
        longer = {(file, line): statistics.fmean(took) / asked for file, line, asked, took in rows if asked}
        return found, longer


def judged(
    script: Path, report: dict[str, Any], longer: dict[tuple[str, int], float]
) -> list[tuple[bool, str]]:
    """Whether each planted line passes, and a row for it; then lines that have what is not theirs."""
    step_ms = report["steps"]["step_ms"]
    told = {(Path(line["file"]).name, line["line"]): line["step_ms"] for line in report["lines"]}
    mine = {place: ms for place, ms in planted().items() if place[0] in files_of(script)}
    rows = []
    for place, asked in mine.items():
        wanted = asked * longer.get(place, 1.0)
        got = told.get(place, 0.0)
        passed = abs(got - wanted) <= max(OF_LINE * wanted, OF_STEP * step_ms)
        rows.append((passed, f"| {place[0]} | {place[1]} | {asked:g} | {wanted:.2f} | {got:.2f} |"))
    for place, got in told.items():
        if place not in mine and got > max(OTHERS_MS, OTHERS_OF_STEP * step_ms):
            rows.append((False, f"| {place[0]} | {place[1]} | nothing | | {got:.2f} |"))
    lost = report["unattributed"]["step_ms"]
    if lost > OF_STEP * step_ms:
        rows.append((False, f"| {script.name} | unattributed | nothing | | {lost:.2f} |"))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", help="names of programs, comma between them")
    parser.add_argument("--tries", type=int, default=2)
    options = parser.parse_args()
    scripts = [
        one for one in sorted(HERE.glob("*.py")) if not options.only or one.stem in options.only.split(",")
    ]
    print("| program | line | planted ms | taken ms | reported ms | |\n|---|---|--:|--:|--:|---|")
    passed = total = 0
    for script in scripts:
        rows: list[tuple[bool, str]] = []
        for _ in range(options.tries):
            try:
                rows = judged(script, *profiled(script, options))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                rows = [(False, f"| {script.name} | {error} | | |")]
                continue
            if all(good for good, _ in rows):
                break
        for good, row in rows:
            print(row, "|" if good else "fails |", flush=True)
            passed, total = passed + good, total + 1
    print(f"\n{passed} of {total} rows of {len(scripts)} programs pass")
    return passed != total


if __name__ == "__main__":
    sys.exit(main())
