"""Check a run against budgets, for pull requests.

RUN defaults to the newest run. Of several runs of the same code, the mean is checked, and their spread is
the noise. Exit status 0: every budget holds, or is exceeded by less than the noise; 1: one is exceeded; 2: a
budget refers to something that is not in the run, or the input is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.commands import output, run_argument
from warpline.model.problem import Problem

if TYPE_CHECKING:
    from warpline.check.places import Run


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", metavar="FILE", help="the limits (docs/pull-requests.md)")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="RUN",
        help="baseline for relative limits: a run, or a folder of runs (repeatable)",
    )
    parser.add_argument(
        "--strict", action="store_true", help=("fail too when a limit is exceeded by less than the noise")
    )
    parser.add_argument("--sarif", metavar="FILE", help="write findings and budgets as SARIF 2.1.0")
    parser.add_argument("--github", action="store_true", help="print annotations for GitHub")
    parser.add_argument("--json", metavar="FILE", help="write the verdicts as JSON ('-': standard output)")
    parser.add_argument("runs", nargs="*", metavar="RUN", help="runs to check (the newest)")


def run(options: argparse.Namespace) -> int:
    if not (options.budget or options.sarif or options.github):
        raise Problem("say what to check or to write: --budget FILE, --sarif FILE or --github")
    output.check(options)
    import warpline
    from warpline.check import annotations, budgets, judge, sarif
    from warpline.terminal import check as terminal

    asked = budgets.read(Path(options.budget)) if options.budget else None
    folders = [run_argument.find(word) for word in options.runs or [None]]
    chosen = [_read(folder) for folder in folders]
    against = [Path(word) for word in options.against]
    if asked is not None and asked.baseline and not against:
        against = [Path(options.budget).absolute().parent / asked.baseline]
    others = [folder for path in against for folder in _baseline(path, folders)]
    baseline = [_read(folder) for folder in others]
    verdicts = judge.judge(asked, chosen, baseline) if asked is not None else []
    report, root = chosen[-1].report, project_root(chosen[-1].report.script)
    failed = any(one.outcome == "exceeded" or (options.strict and one.outcome != "held") for one in verdicts)
    if options.sarif:
        output.json(sarif.log(report, verdicts, root, warpline.__version__), options.sarif)
    if options.json:
        made = {"format": 1, "runs": [one.name for one in chosen], "baseline": [one.name for one in baseline]}
        output.json({**made, "held": not failed, "budgets": verdicts}, options.json)
    if "-" not in (options.json, options.sarif):
        terminal.show(verdicts, chosen, baseline, failed=failed)
        if options.github:
            for line in annotations.lines(report, verdicts, root):
                print(line)
        for name in filter(None, (options.sarif, options.json)):
            print(f"wrote {name}")
    return 1 if failed else 0


def _read(folder: Path) -> Run:
    from warpline import pipeline, runs
    from warpline.check.places import Run

    manifest = runs.manifest(folder)
    return Run(str(folder), pipeline.report_of(folder), runs.sources(folder), tuple(manifest.timed_ns))


def _baseline(path: Path, checked: Sequence[Path]) -> Sequence[Path]:
    """The run that ``path`` is, or is the name of; or those in the folder, oldest first, of the script that
    is checked (by its name, as another clone's path differs), without ``checked``. Raises Problem."""
    from warpline import runs

    found = sorted(each for each in path.glob("*") if runs.is_run(each)) if path.is_dir() else []
    if not found or runs.is_run(path):
        return [run_argument.find(str(path))]
    own = {each.resolve() for each in checked}
    script = Path(runs.manifest(checked[-1]).script).name
    before = [
        each
        for each in found
        if each.resolve() not in own and Path(runs.manifest(each).script).name == script
    ]
    if not before:
        raise Problem(f"{path} has no run of {script} besides those that are checked")
    return before


def project_root(script: str) -> Path:
    """The folder that paths are relative to: the repository that ``script`` lies in, else where we are."""
    above = [place for place in Path(script).parents if (place / ".git").exists()]
    return above[0] if above else Path.cwd()
