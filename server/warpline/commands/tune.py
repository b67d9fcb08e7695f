"""Try the fixes of SCRIPT alone and together, and write a patch of the best set with a measurable gain.

SCRIPT is profiled first if its sources changed since the newest run. Arguments, interpreter and launcher
default to those of that run. An interrupted search continues where it stopped. The sources are changed only
with --write.
"""

from __future__ import annotations

import argparse
import os
import time
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
    from warpline.model.report import Finding, PlanStep
    from warpline.terminal.progress import Shown
    from warpline.wire.run import Request

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
    from warpline.measure import results, store, timed
    from warpline.measure.ledger import Ledger
    from warpline.measure.proposals import Workbench
    from warpline.measure.search import Search
    from warpline.syntax.files import text_of
    from warpline.terminal import progress
    from warpline.wire.messages import Progress

    output.check(options)
    ended: list[str] = []
    made: list[Path] = []
    with progress.shown(options.progress_fd) as shown:
        with limit.enforced(ended):
            request = _profiled(options, limit, shown, made)
            run_folder = made[0]
            profile, report = pipeline.profile_of(run_folder), pipeline.report_of(run_folder)
            bench = Workbench(profile, text_of, pipeline.predictor_of(run_folder))
            ledger = Ledger(run_folder, profile, text_of, options.fresh)
        if ended:
            raise Problem(*_ended_early(ended, limit.budget_s, shown.message, made))
        profiled_s = time.monotonic() - limit.began
        search = Search(
            request,
            bench,
            ledger,
            budget_s=limit.end - limit.began,
            began=limit.began,
            timer=timed.processes(profile, limit.ending_s),
            cores=profile.facts.flags.cpu_count or 1,
            on_progress=lambda done, total, message: shown.update(
                Progress("measuring", done, total, message)
            ),
        )
        findings = [one for one in report.findings if _wanted(one, options)]
        planned = (
            [step.finding for step in report.plan.steps if _wanted(step, options)] if report.plan else []
        )
        proposals = bench.proposals(findings, alternatives=True, planned=planned)
        with limit.enforced(ended):
            search.run(proposals)
    outcomes, best = search.known()
    for one in findings:
        if best is not None and best.candidate.fixes == (one.id,):
            store.add(run_folder, store.entry(best, one, text_of))
    found = results.results(outcomes, best, text_of, report.steps.step_ms)
    if options.json:
        output.json(found, options.json)
    notes, problem = _left(best, run_folder, request.cwd, found.best.patch, options.write)
    if not ended and limit.end <= time.monotonic():
        ended.append("budget")
    ready = units.seconds(profiled_s)
    more = f"the profile was ready after {ready}, and the next tune continues where this one stopped"
    ending = trials.ending(ended, limit.budget_s, more)
    if options.json != "-":
        trials.show(
            outcomes,
            found,
            search.predictions(),
            [*ending, *notes, *timed.epoch_note(profile), *pipeline.past_predictions(run_folder.parent)],
            proposed=bool(proposals),
        )
    if problem is not None:
        raise problem
    return 130 if "interrupted" in ended else 0


def _wanted(one: Finding | PlanStep, options: argparse.Namespace) -> bool:
    return not options.rule or one.rule in options.rule


def _profiled(options: argparse.Namespace, limit: Deadline, shown: Shown, made: list[Path]) -> Request:
    """What to run. ``made`` gets its run: the newest if that is still valid, else one that is made now."""
    from warpline import pipeline
    from warpline.measure.ending import Ending

    folder, request, run = current_run.wanted(options)
    limit.timing_begins()
    if run is not None:
        made.append(run)
    else:
        pipeline.profile(
            request,
            folder=folder,
            on_progress=shown.update,
            cancelled=Ending(deadline=limit.end),
            on_report=lambda run, _: made.append(run),
            interrupted_s=limit.ending_s,
            ends=limit.end,
        )
    return request


def _ended_early(ended: list[str], budget_s: float, at: str, made: list[Path]) -> tuple[str, int]:
    """The message and the exit status. ``at``: what the profile was doing, in words. ``made``: the run, if
    there is one."""
    if "interrupted" in ended:
        return "interrupted", 130
    within = f"{units.seconds(budget_s)} (--budget)"
    if made:
        return f"no fix was timed: the profile took all of the {within}; the next tune uses it", 1
    doing = f", it was at: {at}" if at else ""
    return f"the script could not be profiled within {within}{doing}; nothing was tried", 1


def _left(
    best: Outcome | None, run_folder: Path, cwd: str, patch: str, write: bool
) -> tuple[list[str], Problem | None]:
    """Leave the patch beside the run, or write the files: what was done, in words. Where they cannot be
    written, the patch is left too, and the problem is returned: the search took minutes."""
    if best is None:
        return [], None
    problem: Problem | None = None
    if write:
        try:
            return _written(best.candidate, fix_selection.root_of(run_folder, cwd)), None
        except Problem as found:
            problem = found
    from warpline import runs

    path = run_folder / PATCH
    runs.write(path, patch.encode())
    return [f"the patch: {os.path.relpath(path)} (git apply it, or tune --write)"], problem


def _written(candidate: Candidate, root: Path) -> list[str]:
    from warpline.syntax import files

    done = []
    for path, text in sorted(candidate.overlay.items()):
        fix_selection.inside(path, root)
        files.write(files.read(path), text)
        done.append(f"changed {os.path.relpath(path)}")
    return done
