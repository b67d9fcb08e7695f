"""What the report says of each line against an independent stopwatch, script by script.

    python benchmarks/truth.py [--python PATH] [--rounds 3] [--part seen|kept] [--only NAME] [--markdown FILE]
                               [--cores 0-15 --jobs 8] [--control]
    python benchmarks/truth.py --sync                         # on a GPU

Each script of ``benchmarks/truth/scripts`` runs under ``warpline profile --json`` and under
``benchmarks/truth/stopwatch.py`` in turn, ``--rounds`` times; of each line's share of the step the median
of the rounds counts, so that a machine that is slow for a while slows both. Lines below are *figures*: a
line, or lines that no clock can tell apart (see stopwatch.py). A figure that either side puts at 5 % of the
step or more passes when it is within 10 % of its time or within 2 % of the step. Operators use
``--threads`` threads.

``--processor`` measures processor time instead: on a busy machine it is the steadier clock, and its shares
can be compared where a script does not sleep.

``--jobs`` runs several scripts at a time, each on its share of ``--cores``. A job needs two cores: one for
the script and one for what samples it.

``--sync`` runs the scripts in ``gpu`` instead. The stopwatch then waits for the device at every clock read,
so a line's time is that of the host and of the device, one after the other. That is an upper bound of what
the report may say of the line: a figure fails when it is reported with more than that, by more than 10 % of
its time and 2 % of the measured step.

``--control`` runs the stopwatch a second time in each round and compares it with itself in the same way.
Lines of a script take different shares in different processes, so two stopwatches disagree too: as many
failures as that are not the report's.

``seen`` are the scripts that were looked at while the times were worked on; ``kept`` were scored at the end
only. Exit status 1 when a line fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pinned

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "truth" / "scripts"
STOPWATCH = HERE / "truth" / "stopwatch.py"
LEAST_SHARE = 0.05  # of the step: what a figure must take to be looked at
OF_LINE, OF_STEP = 0.10, 0.02  # how far off it may be
LOOKS = 3
TIMEOUT_S = 300
#: So that all processes do the same work. By default dictionaries of strings collide in ways of their own in
#: each process, and glibc gives memory at the end of its heap back to the system: a step then has 0 or
#: thousands of page faults, depending on what else is in the heap, and changes between them now and then.
STEADY = {
    "PYTHONHASHSEED": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest that glibc takes
}


@dataclass(frozen=True)
class Figure:
    """Lines whose time is one number: (file, line) pairs, and whether it is the backward pass."""

    lines: frozenset[tuple[str, int]]
    backward: bool

    def text(self) -> str:
        file, line = min(self.lines)
        words = Path(file).read_text(encoding="utf-8").splitlines()[line - 1].strip()
        more = f" (+{len(self.lines) - 1})" if len(self.lines) > 1 else ""
        return f"{line}{more}: `{words[:56]}`"


@dataclass(frozen=True)
class Row:
    script: str
    figure: Figure
    measured: float  # shares of the step
    reported: float
    step_ms: float
    bound: bool = False  # ``measured`` is the most that it may be
    again: float | None = None  # the share by the second stopwatch of ``--control``

    @property
    def of_line(self) -> float:
        return abs(self.reported - self.measured) / max(self.measured, 1e-9)

    @property
    def of_step(self) -> float:
        return abs(self.reported - self.measured)

    @property
    def passed(self) -> bool:
        if self.bound and self.reported <= self.measured:
            return True
        return self.of_line <= OF_LINE or self.of_step <= OF_STEP

    @property
    def control(self) -> Row | None:
        """The second stopwatch in the place of the report."""
        return None if self.again is None else replace(self, reported=self.again, again=None)


def figures(fine: dict[str, Any]) -> list[Figure]:
    """The figures of a script, from a stopwatch run with all statements."""
    statements = fine["statements"]
    group = list(range(len(statements)))

    def root(at: int) -> int:
        while group[at] != at:
            at = group[at]
        return at

    backward = [
        at
        for at, one in enumerate(statements)
        if one["backward"] or (one["in_backward_ms"] and not one["ms"])
    ]
    for at in backward:
        group[root(at)] = root(backward[0])
    for at, one in enumerate(statements):
        if one["short"]:
            for parent in one["parents"]:
                group[root(at)] = root(parent)
    lines: dict[int, set[tuple[str, int]]] = {}
    for at, one in enumerate(statements):
        covered = {(one["file"], line) for line in range(one["line"], one["last"] + 1)}
        lines.setdefault(root(at), set()).update(covered)
    inside = {root(at) for at in backward}
    return [Figure(frozenset(covered), at in inside) for at, covered in lines.items()]


def measured(figure: Figure, coarse: dict[str, Any]) -> float:
    """Milliseconds a step by the stopwatch."""
    total = 0.0
    for one in coarse["statements"]:
        here = (one["file"], one["line"]) in figure.lines
        total += one["ms"] * here + one["in_backward_ms"] * figure.backward
    return total


def reported(figure: Figure, report: dict[str, Any]) -> float:
    """The same by the report: backward passes stand at the lines of their forward, here they are together."""
    total = 0.0
    for line in report["lines"]:
        later = line["backward_ms"] + line["recompute_ms"]
        if (str(Path(line["file"]).resolve()), line["line"]) in figure.lines:
            total += line["step_ms"] - later
        if figure.backward:
            total += later
    return total


def tried(script: Path, options: argparse.Namespace) -> list[Row] | None:
    """The rows of a script; None, and the reason on stderr, where a run of it failed."""
    try:
        return rows(script, options)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{script.stem}: {error}", file=sys.stderr)
        return None


def rows(script: Path, options: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        fine = looked_over(script, folder / "fine.json", options)
        sides: dict[str, list[dict[str, Any]]] = {"stopwatch": [], "report": []}
        if options.control:
            sides["control"] = []
        for turn in range(options.rounds):
            for which in sides if turn % 2 == 0 else reversed(sides):
                file = folder / f"{which}{turn}.json"
                if which == "report":
                    run_warpline(script, file, options)
                else:
                    run_stopwatch(script, file, options, folder / "fine.json")
                sides[which].append(json.loads(file.read_text(encoding="utf-8")))
    if options.keep:
        Path(options.keep, f"{script.stem}.json").write_text(json.dumps([fine, *sides.values()]))
    return compared(script.stem, fine, *sides.values(), bound=options.sync)


def looked_over(script: Path, file: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A stopwatch run with all statements, left in ``file``, that says which are too short for a clock.

    Without the clock reads of the shortest ones, others turn out to be short: it is asked until none does.
    """
    run_stopwatch(script, file, options)
    fine: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for _ in range(LOOKS):
        again = file.with_name("again.json")
        run_stopwatch(script, again, options, file)
        found = json.loads(again.read_text(encoding="utf-8"))["statements"]
        short = {(one["file"], one["line"]) for one in found if one["short"]}
        new = [one for one in fine["statements"] if not one["short"] and (one["file"], one["line"]) in short]
        for one in new:
            one["short"] = True
        file.write_text(json.dumps(fine), encoding="utf-8")
        if not new:
            break
    return fine


def compared(
    name: str,
    fine: dict[str, Any],
    watched: list[dict[str, Any]],
    told: list[dict[str, Any]],
    again: list[dict[str, Any]] | None = None,
    *,
    bound: bool,
) -> list[Row]:
    """One row for each figure that takes 5 % of the step or more, by either side.

    As an upper bound (``bound``) the milliseconds are compared, else the shares of the step.
    """
    found = []
    step_ms = statistics.median(map(whole_step, watched))
    for figure in figures(fine):
        truth = statistics.median(measured(figure, one) / whole_step(one) for one in watched)
        second = (
            statistics.median(measured(figure, one) / whole_step(one) for one in again) if again else None
        )
        ours = statistics.median(
            reported(figure, one) / (step_ms if bound else one["steps"]["step_ms"]) for one in told
        )
        if max(truth, ours) >= LEAST_SHARE:
            found.append(Row(name, figure, truth, ours, step_ms, bound, second))
    return sorted(found, key=lambda row: -row.measured)


def whole_step(coarse: dict[str, Any]) -> float:
    """Milliseconds of a step by the stopwatch.

    Not the step as it took with the clock reads: in functions that are called thousands of times they are
    half of it. What they cost is taken off the statements, which make up the step without them.
    """
    total: float = sum(one["ms"] + one["in_backward_ms"] for one in coarse["statements"])
    return total


def run_stopwatch(script: Path, file: Path, options: argparse.Namespace, coarse: Path | None = None) -> None:
    given = ["--coarse", str(coarse)] if coarse else []
    given += ["--processor"] * options.processor + ["--sync"] * options.sync
    run([options.python, str(STOPWATCH), "--json", str(file), *given, str(script)], options)


def run_warpline(script: Path, file: Path, options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "warpline", "profile", "--python", options.python, "--json", str(file)]
    run([*command, "--run-dir", str(file.with_suffix("")), str(script)], options)


def run(command: list[str], options: argparse.Namespace) -> None:
    environment = (
        STEADY
        | os.environ
        | {
            "OMP_NUM_THREADS": str(options.threads),
            "MKL_NUM_THREADS": str(options.threads),
        }
    )
    environment.setdefault("PYTHONPATH", str(HERE.parent / "server"))
    done = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def table(found: Iterable[Row]) -> list[str]:
    out = ["| script | line | measured ms | reported ms | off, of the line | off, of the step | |"]
    out.append("|---|---|--:|--:|--:|--:|---|")
    for row in found:
        out.append(
            f"| {row.script} | {row.figure.text()} | {row.measured * row.step_ms:.2f} "
            f"| {row.reported * row.step_ms:.2f} | {100 * row.of_line:.0f} % | {100 * row.of_step:.1f} % "
            f"| {verdict(row)} |"
        )
    return out


def verdict(row: Row) -> str:
    """What failed: the report, and the second stopwatch of ``--control``."""
    said = [] if row.passed else ["fails"]
    if row.control and not row.control.passed:
        said.append(f"stopwatch again: {row.control.reported * row.step_ms:.2f}")
    return "; ".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter with torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--part", choices=("seen", "kept"))
    parser.add_argument("--sync", action="store_true", help="on a GPU: an upper bound, see below")
    pinned.configure(parser)
    parser.add_argument("--only", help="names of scripts, comma between them")
    parser.add_argument("--processor", action="store_true", help="measure processor time: see below")
    parser.add_argument("--control", action="store_true", help="the stopwatch against itself too: see below")
    parser.add_argument("--markdown", type=Path, help="write the table there too")
    parser.add_argument("--keep", help="a folder to leave all figures in")
    options = parser.parse_args()
    parts = ["gpu"] if options.sync else [options.part] if options.part else ["seen", "kept"]
    scripts = [script for part in parts for script in sorted((SCRIPTS / part).glob("*.py"))]
    if options.only:
        scripts = [script for script in scripts if script.stem in options.only.split(",")]
    found: list[Row] = []
    lost = 0
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    print("\n".join(table([])))
    for new in pinned.side_by_side(partial(tried, options=options), scripts, options):
        lost += new is None
        found += new or []
        print("\n".join(table(new or [])[2:]), flush=True)
    if not found:
        print("no script could be measured")
        return 1
    failed = sum(not row.passed for row in found)
    cores = f"{len(options.cores or os.sched_getaffinity(0))} cores, {options.jobs} scripts at a time"
    version = subprocess.run([options.python, "--version"], capture_output=True, text=True, check=True)
    print(
        f"\n{len(found)} lines of {len(scripts) - lost} scripts, {failed} fail; off by "
        f"{100 * statistics.median(row.of_line for row in found):.1f} % of the line in the median, "
        f"{100 * max(row.of_step for row in found):.1f} % of the step at most; {version.stdout.strip()}, "
        f"{cores}, load {os.getloadavg()[0]:.1f}"
    )
    controls = [row.control for row in found if row.control]
    if controls:
        print(
            f"the stopwatch against itself: {sum(not row.passed for row in controls)} fail; off by "
            f"{100 * statistics.median(row.of_line for row in controls):.1f} % of the line in the median, "
            f"{100 * max(row.of_step for row in controls):.1f} % of the step at most"
        )
    if options.markdown:
        options.markdown.write_text("\n".join(table(found)) + "\n", encoding="utf-8")
    return 1 if failed or lost else 0


if __name__ == "__main__":
    sys.exit(main())
