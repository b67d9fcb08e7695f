"""Prediction against measurement: every fix with a prediction, on every workload.

    python benchmarks/predictions.py [SCRIPT...]

Each script is profiled once; each of its findings with an edit and a simulated prediction is then
measured. Mispredictions stand in the table like the others. What is within the noise of its own
measurement is marked: its error is not the prediction's alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from warpline import pipeline
from warpline.measure.contest import Limits
from warpline.measure.fixes import measure_fix, workbench
from warpline.model.problem import Problem
from warpline.model.run import Request

WORKLOADS = Path(__file__).parent / "workloads"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def main() -> int:
    options = arguments()
    scripts = [Path(word).resolve() for word in options.scripts] or sorted(
        [path for path in WORKLOADS.glob("*.py") if path.stem != "steady"] + list(EXAMPLES.glob("*/slow.py"))
    )
    errors: list[float] = []
    print("| script | fix | step ms | predicted | measured | 95 % interval | error |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for script in scripts:
        with tempfile.TemporaryDirectory() as folder:
            errors += rows(script, Path(folder), options)
    if not errors:
        print("\nno fix could be predicted and measured")
        return 1
    print(
        f"\n{len(errors)} fixes on {len(scripts)} scripts: median error {100 * median(errors):.0f} %, ",
        end="",
    )
    print(f"largest {100 * max(errors):.0f} %")
    return 0


def rows(script: Path, folder: Path, options: argparse.Namespace) -> list[float]:
    """Print a row for each fix of ``script``; their relative errors."""
    name = script.stem if script.parent == WORKLOADS else f"{script.parent.name}/{script.name}"
    request = Request(target=str(script), cwd=str(script.parent), python=options.python)
    limits = Limits(first=options.rounds, rounds=2 * options.rounds)
    errors = []
    try:
        run, report = pipeline.profile(request, folder=folder)
        # Predictions were made with the report; the bench asks for no others.
        bench = workbench(pipeline.profile_of(run))
    except Problem as problem:
        print(f"| {name} | {problem} | | | | | |", flush=True)
        return []
    for finding in report.findings:
        said = finding.predicted
        if said is None or said.basis != "simulated" or not bench.proposals([finding]):
            continue
        try:
            outcome = measure_fix(run, bench, finding, request, limits=limits)
        except Problem as problem:
            print(f"| {name} | {finding.rule} | | {said.speedup:.2f} | {problem} | | |", flush=True)
            continue
        seen = outcome.measured
        if seen is None:
            print(f"| {name} | {finding.rule} | | {said.speedup:.2f} | {outcome.reason} | | |", flush=True)
            continue
        errors.append(abs(said.speedup / seen.speedup - 1))
        noise = " (within noise)" if seen.low <= said.speedup <= seen.high else ""
        figures = (outcome.baseline_step_ms, said.speedup, seen.speedup)
        cells = [name, finding.rule, *(f"{figure:.2f}" for figure in figures)]
        cells += [f"{seen.low:.2f} to {seen.high:.2f}", f"{100 * errors[-1]:.0f} %{noise}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    return errors


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    parser.add_argument("--rounds", type=int, default=4, help="rounds that decide how many there will be")
    parser.add_argument("--python", default=sys.executable)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
