"""``warpline fix --measure``: each fix tried on the running script by itself, and timed.

Nothing is written to the sources. The script runs as it was profiled, except for what the command line
says. What is found is kept with the run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.capture.progress import Progress
    from warpline.measure import Outcome
    from warpline.measure.proposals import Proposal, Workbench


def run(options: argparse.Namespace) -> int:
    """Measure the fixes that ``--rule`` and ``--line`` leave; print them, or write them as JSON."""
    from warpline import pipeline
    from warpline.commands import fix, output, trials
    from warpline.measure import results
    from warpline.measure.fixes import workbench
    from warpline.terminal import progress

    run_folder = fix.folder_of(options)
    report = pipeline.report_of(run_folder)
    bench = workbench(pipeline.profile_of(run_folder))
    proposals = bench.proposals(fix.chosen(report.findings, options))
    with progress.shown(options.progress_fd) as shown:
        outcomes = _measured(options, run_folder, bench, proposals, shown.update)
    kept = [one for one in outcomes if one.kept and one.measured is not None]
    best = max(kept, key=lambda one: one.measured.speedup if one.measured else 0.0, default=None)
    found = results.results(outcomes, best, bench.texts, report.steps.step_ms)
    if options.json:
        output.json(found, options.json)
    if options.json != "-":
        predicted = {one.finding.id: one.finding.predicted for one in proposals}
        speedups = {
            outcome.candidate.key: said.speedup
            for outcome in outcomes
            if (said := predicted[outcome.candidate.fixes[0]]) is not None
        }
        trials.show(outcomes, found, speedups, pipeline.past_predictions(run_folder.parent))
    return 0


def _measured(
    options: argparse.Namespace,
    run_folder: Path,
    bench: Workbench,
    proposals: Sequence[Proposal],
    say: Callable[[Progress], None],
) -> list[Outcome]:
    from warpline import runs
    from warpline.capture.progress import Progress
    from warpline.commands import target
    from warpline.measure.fixes import measure_fix
    from warpline.measure.pairs import Limits

    request = target.again(options, runs.manifest(run_folder).request)
    limits = Limits(seconds=options.budget or Limits().seconds)
    outcomes: list[Outcome] = []
    for number, one in enumerate(proposals):
        title = f"{one.finding.rule} ({number + 1}/{len(proposals)})"

        def report(done: int, total: int, message: str, title: str = title) -> None:
            say(Progress("measuring", done, total, f"{title}: {message}"))

        try:
            outcomes.append(
                measure_fix(run_folder, bench, one.finding, request, limits=limits, on_progress=report)
            )
        except Problem as problem:
            if problem.status != 2:
                raise
            print(f"warpline: {problem}", file=sys.stderr)
    return outcomes
