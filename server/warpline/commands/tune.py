"""Try the fixes of SCRIPT, alone and together, and leave a patch of the best set that could be proven.

SCRIPT is profiled first when its newest run is of other sources. A search that was ended goes on where
it stopped. Nothing is written to the sources unless --write is given.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import target
from warpline.commands.profile import number, seconds
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.capture.progress import Progress
    from warpline.measure import Candidate, Outcome
    from warpline.model.profile import Profile
    from warpline.model.run import Request

BUDGET_S = 300.0
PATCH = "tune.patch"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline tune [options] (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument("--budget", type=seconds, metavar="SECONDS", help=f"for all of it ({BUDGET_S:g})")
    parser.add_argument("--rule", action="append", metavar="RULE", help="only this rule's fixes (repeatable)")
    parser.add_argument("--write", action="store_true", help="apply the best proven set")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier search found")
    parser.add_argument("--run-dir", metavar="DIR", help="where run folders are (.warpline/runs)")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON ('-': standard output)")
    parser.add_argument(
        "--progress-fd", type=number(0), metavar="N", help="write progress to this descriptor as JSON lines"
    )
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    from warpline import pipeline
    from warpline.capture.progress import Progress
    from warpline.commands import output, trials
    from warpline.diagnosis.files import text_of
    from warpline.measure import results, store
    from warpline.measure.ledger import Ledger
    from warpline.measure.proposals import Workbench
    from warpline.measure.search import Search
    from warpline.measure.timed import Processes
    from warpline.terminal import progress

    began = time.monotonic()
    request = target.request(options)
    with progress.shown(options.progress_fd) as shown:
        run_folder = _run_folder(request, options, shown.update)
        profile, report = pipeline.profile_of(run_folder), pipeline.report_of(run_folder)
        bench = Workbench(profile, text_of, pipeline.predictor_of(run_folder))
        ledger = Ledger(run_folder, profile, text_of, options.fresh)
        search = Search(
            request,
            bench,
            ledger,
            budget_s=options.budget or BUDGET_S,
            began=began,
            timer=Processes(report.steps.step_ms),
            cores=int(profile.facts.flags.get("cpu_count") or os.cpu_count() or 1),
            on_progress=lambda done, total, message: shown.update(
                Progress("measuring", done, total, message)
            ),
        )
        findings = [one for one in report.findings if not options.rule or one.rule in options.rule]
        outcomes, best = search.run(bench.proposals(findings, alternatives=True))
    for one in findings:
        if best is not None and best.candidate.fixes == (one.id,):
            store.add(run_folder, store.entry(best, one, text_of))
    found = results.results(outcomes, best, text_of, report.steps.step_ms)
    if options.json:
        output.json(found, options.json)
    notes = _left(best, run_folder, found.best.patch, options.write)
    if options.json != "-":
        trials.show(
            outcomes, found, search.predictions(), [*notes, *pipeline.past_predictions(run_folder.parent)]
        )
    return 0


def _run_folder(request: Request, options: argparse.Namespace, say: Callable[[Progress], None]) -> Path:
    """The newest run with these arguments, when the sources are as they were; else a new one."""
    from warpline import pipeline, runs

    folder = Path(options.run_dir).absolute() if options.run_dir else runs.runs_folder(Path.cwd())
    try:
        newest = runs.newest(folder, request.target)
        if runs.manifest(newest).argv == request.argv and not _changed(pipeline.profile_of(newest)):
            return newest
    except Problem:
        pass
    return pipeline.profile(request, folder=folder, on_progress=say)[0]


def _changed(profile: Profile) -> bool:
    from warpline.diagnosis.files import text_of

    return any(text_of(file) != text for file, text in profile.sources.items())


def _left(best: Outcome | None, run_folder: Path, patch: str, write: bool) -> list[str]:
    """Leave the patch beside the run, or write the files; what was done, in words."""
    if best is None:
        return []
    if write:
        return _written(best.candidate)
    path = run_folder / PATCH
    path.write_text(patch, encoding="utf-8", newline="")
    return [f"the patch: {os.path.relpath(path)} (git apply it, or tune --write)"]


def _written(candidate: Candidate) -> list[str]:
    from warpline.diagnosis import files

    done = []
    for path, text in sorted(candidate.overlay.items()):
        files.write(files.read(path), text)
        done.append(f"changed {os.path.relpath(path)}")
    return done
