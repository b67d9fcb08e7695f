"""Try the fixes of SCRIPT alone and together, and write a patch of the best set with a measurable gain.

SCRIPT is profiled first if its sources changed since the newest run. Arguments, interpreter and launcher
default to those of that run. An interrupted search continues where it stopped. The sources are changed only
with --write.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import current_run, fix_selection, target
from warpline.commands.deadline import Deadline
from warpline.commands.profile import number, seconds
from warpline.model import units
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.measure.candidate import Candidate
    from warpline.measure.contest import Outcome

BUDGET_S = 300.0
PATCH = "tune.patch"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline tune [options] (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument(
        "--budget", type=seconds, metavar="SECONDS", help=(f"time limit for everything ({BUDGET_S:g})")
    )
    parser.add_argument("--rule", action="append", metavar="RULE", help="only this rule's fixes (repeatable)")
    parser.add_argument("--write", action="store_true", help="apply the best proven set")
    parser.add_argument("--fresh", action="store_true", help="ignore the results of an earlier search")
    parser.add_argument("--run-dir", metavar="DIR", help="where run folders are (.warpline/runs)")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON ('-': standard output)")
    parser.add_argument(
        "--progress-fd", type=number(0), metavar="N", help="write progress to this descriptor as JSON lines"
    )
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    limit = Deadline(options.began, options.budget or BUDGET_S)
    with limit.last_resort():
        return _tune(options, limit)


def _tune(options: argparse.Namespace, limit: Deadline) -> int:
    from warpline import pipeline
    from warpline.commands import output, trials
    from warpline.measure import epochs, results, store
    from warpline.measure.ending import Ending
    from warpline.measure.ledger import Ledger
    from warpline.measure.proposals import Workbench
    from warpline.measure.search import Search
    from warpline.measure.timed import Processes
    from warpline.syntax.files import text_of
    from warpline.terminal import progress
    from warpline.wire.messages import Progress

    output.check(options)
    ended: list[str] = []
    with progress.shown(options.progress_fd) as shown:
        with limit.enforced(ended):
            folder, request, run_folder = current_run.wanted(options)
            limit.timing_begins()
            if run_folder is None:
                run_folder = pipeline.profile(
                    request,
                    folder=folder,
                    on_progress=shown.update,
                    cancelled=Ending(deadline=limit.end),
                    interrupted_s=limit.ending_s,
                )[0]
            profile, report = pipeline.profile_of(run_folder), pipeline.report_of(run_folder)
            bench = Workbench(profile, text_of, pipeline.predictor_of(run_folder))
            ledger = Ledger(run_folder, profile, text_of, options.fresh)
        if ended:
            raise Problem(*_ended_early(ended, limit.budget_s))
        search = Search(
            request,
            bench,
            ledger,
            budget_s=limit.end - limit.began,
            began=limit.began,
            timer=Processes(report.steps.step_ms, limit.ending_s, epochs.batches(profile)),
            cores=profile.facts.flags.cpu_count or 1,
            on_progress=lambda done, total, message: shown.update(
                Progress("measuring", done, total, message)
            ),
        )
        findings = [one for one in report.findings if not options.rule or one.rule in options.rule]
        proposals = bench.proposals(findings, alternatives=True)
        with limit.enforced(ended):
            search.run(proposals)
    outcomes, best = search.known()
    for one in findings:
        if best is not None and best.candidate.fixes == (one.id,):
            store.add(run_folder, store.entry(best, one, text_of))
    found = results.results(outcomes, best, text_of, report.steps.step_ms)
    if options.json:
        output.json(found, options.json)
    notes = _left(best, run_folder, request.cwd, found.best.patch, options.write)
    if options.json != "-":
        trials.show(
            outcomes,
            found,
            search.predictions(),
            [*trials.ending(ended, limit.budget_s), *notes, *pipeline.past_predictions(run_folder.parent)],
            proposed=bool(proposals),
        )
    return 130 if "interrupted" in ended else 0


def _ended_early(ended: list[str], budget_s: float) -> tuple[str, int]:
    if "interrupted" in ended:
        return "interrupted", 130
    within = units.seconds(budget_s)
    return f"the script could not be profiled within {within} (--budget): nothing was tried", 1


def _left(best: Outcome | None, run_folder: Path, cwd: str, patch: str, write: bool) -> list[str]:
    """Leave the patch beside the run, or write the files; what was done, in words."""
    if best is None:
        return []
    if write:
        return _written(best.candidate, fix_selection.root_of(run_folder, cwd))
    from warpline import runs

    path = run_folder / PATCH
    runs.write(path, patch.encode())
    return [f"the patch: {os.path.relpath(path)} (git apply it, or tune --write)"]


def _written(candidate: Candidate, root: Path) -> list[str]:
    from warpline.syntax import files

    done = []
    for path, text in sorted(candidate.overlay.items()):
        fix_selection.inside(path, root)
        files.write(files.read(path), text)
        done.append(f"changed {os.path.relpath(path)}")
    return done
