"""``warpline fix --measure``: each fix tried on the running script by itself, and timed.

Nothing is written to the sources. The script runs as it was profiled, except for what the command line
says. What is found is kept with the run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands.deadline import Deadline
from warpline.model import units
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.measure.candidate import Candidate
    from warpline.measure.contest import Contest
    from warpline.measure.proposals import Proposal, Workbench
    from warpline.wire.messages import Progress

#: The budget where none is named: for the plain script and each fix.
PER_FIX_S, LEAST_S = 90.0, 180.0


def run(options: argparse.Namespace) -> int:
    """Measure the fixes that ``--rule`` and ``--line`` leave; print them, or write them as JSON."""
    with ExitStack() as limited:
        limit = Deadline(options.began, options.budget) if options.budget else None
        if limit is not None:
            limited.enter_context(limit.last_resort())
        return _measure(options, limit, limited)


def _measure(options: argparse.Namespace, limit: Deadline | None, limited: ExitStack) -> int:
    from warpline import pipeline
    from warpline.commands import fix_selection, output, trials
    from warpline.measure import results, timed
    from warpline.measure.fixes import workbench
    from warpline.terminal import progress

    output.check(options)
    run_folder = fix_selection.folder_of(options)
    report = pipeline.report_of(run_folder)
    bench = workbench(pipeline.profile_of(run_folder))
    planned = fix_selection.later(report, bench.profile, options)
    proposals = bench.proposals([*fix_selection.chosen(report.findings, options), *planned])
    tried = list(_candidates(bench, proposals))
    if limit is None:
        limit = Deadline(options.began, max(LEAST_S, PER_FIX_S * len(tried)))
        limited.enter_context(limit.last_resort())
    limit.timing_begins()
    ended: list[str] = []
    with progress.shown(options.progress_fd) as shown:
        contest = _contest(options, run_folder, bench, tried, limit, shown.update)
        with limit.enforced(ended):
            try:
                contest.run()
            except Problem as problem:
                # A plain script that fails once does not cost what was found before.
                if problem.status != 1 or all(one.untimed for one in contest.outcomes()):
                    raise
                print(f"warpline: {problem}", file=sys.stderr)
        if contest.cut_short and not ended:
            ended.append("budget")
    outcomes = contest.outcomes(report.steps.step_ms)
    _keep(run_folder, bench, tried, contest)
    kept = [one for one in outcomes if one.kept and one.measured is not None]
    best = max(kept, key=lambda one: one.measured.speedup if one.measured else 0.0, default=None)
    found = results.results(outcomes, best, bench.texts, report.steps.step_ms)
    if options.json:
        output.json(found, options.json)
    if options.json != "-":
        speedups = {
            candidate.key: one.finding.predicted.speedup
            for one, candidate in tried
            if one.finding.predicted is not None
        }
        all_s = time.monotonic() - limit.began + contest.forecast.left_s(contest.several)
        at = shown.message.partition(";")[0]
        more = f"it was at: {at}; all rounds take about {units.seconds(all_s)} here"
        notes = [
            *trials.ending(ended, limit.budget_s, more),
            *timed.epoch_note(bench.profile),
            *pipeline.past_predictions(run_folder.parent),
        ]
        trials.show(outcomes, found, speedups, notes)
    return 130 if "interrupted" in ended else 0


def _candidates(bench: Workbench, proposals: Sequence[Proposal]) -> list[tuple[Proposal, Candidate]]:
    found = []
    for one in proposals:
        candidate = bench.candidate([one])
        if candidate is None:
            why = "it has no edit to measure, or its line changed"
            print(f"warpline: {one.finding.rule}: {why}", file=sys.stderr)
        else:
            found.append((one, candidate))
    return found


def _contest(
    options: argparse.Namespace,
    run_folder: Path,
    bench: Workbench,
    tried: Sequence[tuple[Proposal, Candidate]],
    limit: Deadline,
    say: Callable[[Progress], None],
) -> Contest:
    from warpline import runs
    from warpline.commands import target
    from warpline.measure import timed
    from warpline.measure.contest import Contest
    from warpline.measure.pairs import QUICK
    from warpline.wire.messages import Progress

    return Contest(
        target.again(options, runs.manifest(run_folder).request),
        [candidate for _, candidate in tried],
        QUICK,
        timed.processes(bench.profile, limit.ending_s),
        lambda done, total, message: say(Progress("measuring", done, total, message)),
        deadline=limit.end,
    )


def _keep(
    run_folder: Path, bench: Workbench, tried: Sequence[tuple[Proposal, Candidate]], contest: Contest
) -> None:
    """Beside the run, what was timed at least twice, or failed: the rest is not a measurement."""
    from warpline.measure import store

    for (one, _), outcome in zip(tried, contest.outcomes(), strict=True):
        if outcome.rounds == 1 or outcome.untimed:
            continue
        try:
            store.add(run_folder, store.entry(outcome, one.finding, bench.texts))
        except Problem as problem:
            print(f"warpline: the measurement was not saved: {problem}", file=sys.stderr)
            return
