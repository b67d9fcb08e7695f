"""Prediction against measurement: every fix with a prediction, on every workload.

    python benchmarks/predictions.py [--seconds 460] [--json FILE] [--keep FOLDER] [SCRIPT...]
    python benchmarks/predictions.py --again FILE --keep FOLDER

Each script is profiled once, which makes the predictions, and timed once, which warms its caches; then
each fix is timed against the plain script, both alive and in slices in turn: ``ATONCE`` rounds of every
fix before any gets more, until ``--rounds`` are done or ``--seconds`` are over. Mispredictions stand in
the table like the others. What is within the noise of its own measurement is marked: its error is not the
prediction's alone. ``--json`` is written anew after every fix; ``--keep`` packs the run folders. With
both, ``--again`` prints what the code as it is now would have predicted beside what was measured then.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import median

#: Rounds whose processes are started together.
ATONCE = 3
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "server"))

from warpline import pipeline
from warpline.measure import contest
from warpline.measure.fixes import workbench
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.rounds import play
from warpline.measure.timed import Processes
from warpline.model.problem import Problem
from warpline.model.report import Finding, Report
from warpline.wire.run import Request

#: Those with the most to predict first: what the clock cuts off are later rounds of all of them.
SCRIPTS = (
    *(f"examples/{name}/slow.py" for name in ("fp32-bert", "layernorm-finetune", "loader-without-workers")),
    *(f"examples/{name}/slow.py" for name in ("transpose-kernel", "quickstart")),
    *(f"benchmarks/workloads/{name}.py" for name in ("transformer", "convolutions", "launches", "syncs")),
)
#: Compiling costs up to a minute a process: what compiles and promises less than this is left out.
COMPILED_LEAST = 1.05
#: What later stages make of a run is made anew from the kept folder.
MADE_LATER = ("report.json", "profile.json", "measured.json")


@dataclass
class Row:
    """One fix of one script. ``predicted``, ``speedup``: of the plain step; None while not timed.

    ``profiled_ms`` is the plain step that the prediction starts from, ``step_ms`` the one timed later.
    """

    script: str
    rule: str
    finding: str
    fix: str
    predicted: float
    profiled_ms: float | None = None
    step_ms: float | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    loss_drift: float | None = None
    memory_ratio: float | None = None
    rounds: int = 0
    reason: str = "not timed"

    @property
    def error(self) -> float | None:
        return abs(self.predicted / self.speedup - 1) if self.speedup else None


@dataclass
class Workload:
    name: str
    request: Request
    timer: Processes
    rows: list[Row]
    pairs: list[Pairs]


def main() -> int:
    options = arguments()
    rows = again(options.again, options.keep) if options.again else measured(options)
    show(rows)
    return 0 if any(row.error is not None for row in rows) else 1


def measured(options: argparse.Namespace) -> list[Row]:
    """Profile and time the scripts; a row for each fix with a prediction."""
    ends = time.monotonic() + options.seconds
    rows: list[Row] = []
    workloads: list[Workload] = []
    with tempfile.TemporaryDirectory() as folder:
        for word in options.scripts or SCRIPTS:
            if time.monotonic() < ends:
                workloads += profiled((ROOT / word).resolve(), Path(folder), options)
                rows = [row for workload in workloads for row in workload.rows]
                save(rows, options.json)
        for first in range(0, options.rounds, ATONCE):
            for workload, row, pairs in by_turns(workloads):
                if time.monotonic() < ends:
                    timed(workload, row, pairs, range(first, min(first + ATONCE, options.rounds)), options)
                    save(rows, options.json)
    return rows


def profiled(script: Path, folder: Path, options: argparse.Namespace) -> Iterator[Workload]:
    """Profile ``script``: its fixes with their predictions. Nothing where that fails."""
    name = str(script.relative_to(ROOT)) if script.is_relative_to(ROOT) else str(script)
    request = Request(target=str(script), cwd=str(script.parent), python=options.python)
    began = time.monotonic()
    try:
        run, report = pipeline.profile(request, folder=folder / name.replace("/", "-").removesuffix(".py"))
        bench = workbench(pipeline.profile_of(run))
    except Problem as problem:
        say(f"{name}: {problem}")
        return
    if options.keep:
        keep(run, options.keep / f"{run.parent.name}.tar.gz")
    found = Workload(name, request, Processes(report.steps.step_ms), [], [])
    for row, finding in predicted(name, report):
        proposals = bench.proposals([finding])
        candidate = bench.candidate(proposals) if proposals else None
        if candidate is None or (compiles(proposals[0].title) and row.predicted < COMPILED_LEAST):
            continue
        if len(found.rows) < options.most:
            row.fix = proposals[0].title
            found.rows.append(row)
            found.pairs.append(Pairs(candidate))
    try:
        found.timer(request, {}, options.limit, None)
    except Problem as problem:
        say(f"{name}: {problem}")
        return
    say(f"{name}: {len(found.rows)} fixes, {time.monotonic() - began:.0f} s")
    yield found


def compiles(title: str) -> bool:
    return title.startswith("Compile")


def predicted(name: str, report: Report) -> Iterator[tuple[Row, Finding]]:
    """Rows with a simulated prediction, and the findings that they are of."""
    for finding in report.findings:
        said = finding.predicted
        if said is not None and said.basis == "simulated":
            yield Row(name, finding.rule, finding.id, "", said.speedup, report.steps.step_ms), finding


def by_turns(workloads: list[Workload]) -> Iterator[tuple[Workload, Row, Pairs]]:
    """The first fix of every script, then every second one, ..."""
    fixes = [list(zip(one.rows, one.pairs, strict=True)) for one in workloads]
    for turn in zip_longest(*fixes):
        for workload, fix in zip(workloads, turn, strict=True):
            if fix is not None:
                yield workload, *fix


def timed(
    workload: Workload, row: Row, pairs: Pairs, numbers: Sequence[int], options: argparse.Namespace
) -> None:
    """More rounds of one fix."""
    if pairs.failure:
        return
    limits = Limits(first=options.rounds, run_s=options.limit)
    began = time.monotonic()
    try:
        play(workload.request, [pairs], numbers, limits=limits, timer=workload.timer)
    except Problem as problem:
        say(f"{workload.name}: {problem}")
        return
    outcome = contest.outcome(pairs, limits)
    row.step_ms, row.rounds, row.reason = outcome.baseline_step_ms, outcome.rounds, outcome.reason
    seen = outcome.measured
    if seen is not None:
        row.speedup, row.loss_drift, row.memory_ratio = seen.speedup, seen.loss_drift, seen.memory_ratio
        row.low, row.high = (seen.low, seen.high) if math.isfinite(seen.high) else (None, None)
    ratios = " ".join(f"{math.exp(ratio):.3f}" for ratio in pairs.log_ratios())
    say(f"{workload.name} {row.rule}: {ratios}, {time.monotonic() - began:.0f} s")


def again(file: Path, kept: Path | None) -> list[Row]:
    """The rows of ``file`` with the predictions that the code makes now for the runs in ``kept``."""
    if kept is None:
        raise SystemExit("--again needs --keep FOLDER, where the runs were packed")
    rows = [Row(**fields) for fields in json.loads(file.read_text())]
    for name in dict.fromkeys(row.script for row in rows):
        with tempfile.TemporaryDirectory() as folder:
            packed = kept / f"{name.replace('/', '-').removesuffix('.py')}.tar.gz"
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            now = {row.finding: row for row, _ in predicted(name, pipeline.report_of(Path(folder)))}
        for row in (row for row in rows if row.script == name):
            made = now.get(row.finding)
            row.predicted, row.profiled_ms = (made.predicted, made.profiled_ms) if made else (math.nan, None)
    return [row for row in rows if not math.isnan(row.predicted)]


def show(rows: list[Row]) -> None:
    print("| script | fix | profiled ms | timed ms | predicted | measured | 95 % interval | error |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        cells = [row.script.removesuffix(".py").removesuffix("/slow"), row.rule]
        cells += [f"{ms:.2f}" if ms else "" for ms in (row.profiled_ms, row.step_ms)]
        cells.append(f"{row.predicted:.2f}")
        if row.speedup is None or row.error is None:
            cells += [row.reason, "", ""]
        else:
            interval, noise = "one round", ""
            if row.low is not None and row.high is not None:
                interval = f"{row.low:.2f} to {row.high:.2f}"
                noise = " (within noise)" if row.low <= row.predicted <= row.high else ""
            cells += [f"{row.speedup:.2f}", interval, f"{100 * row.error:.0f} %{noise}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    timed = [row for row in rows if row.error is not None]
    errors = [row.error for row in timed if row.error is not None]
    if errors:
        scripts = len({row.script for row in timed})
        print(
            f"\n{len(errors)} fixes on {scripts} scripts: median error {100 * median(errors):.0f} %, ", end=""
        )
        print(f"largest {100 * max(errors):.0f} %")


def save(rows: list[Row], file: Path | None) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(".part")
        scratch.write_text(json.dumps([asdict(row) for row in rows], indent=1))
        scratch.replace(file)


def keep(run: Path, packed: Path) -> None:
    packed.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(packed, "w:gz") as archive:
        for file in sorted(run.iterdir()):
            if file.name not in MADE_LATER:
                archive.add(file, file.name)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    parser.add_argument("--rounds", type=int, default=5, help="of each fix, at most (5)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start nothing after so long")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for one process (90)")
    parser.add_argument("--most", type=int, default=7, help="fixes of a script, as the report ranks them (7)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here after every round")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the run folders are packed")
    parser.add_argument("--again", type=Path, metavar="FILE", help="rows that --json left: predict anew")
    parser.add_argument("--python", default=sys.executable)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
