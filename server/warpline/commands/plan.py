"""Show the fixes of SCRIPT in the best order, with the gain of each after the earlier ones.

The gains are predicted by replaying a captured step; nothing is timed. SCRIPT is profiled first if its newest
run has other sources or arguments. The floor is the time that the device needs for the step's work at its
peak rates. A fix that alone would give no measurable gain is offered by `warpline fix` once those before it
are made, SCRIPT is profiled again, and it gains then.
"""

from __future__ import annotations

import argparse

from warpline.commands import current_run, target


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "warpline plan [options] (SCRIPT | -m MODULE) [ARGS...]"
    parser.add_argument("--json", metavar="FILE", help="write the plan as JSON ('-': standard output)")
    parser.add_argument("--run-dir", metavar="DIR", help="where run folders are (.warpline/runs)")
    target.configure(parser)


def run(options: argparse.Namespace) -> int:
    from warpline import pipeline
    from warpline.commands import output
    from warpline.terminal import plan, progress

    output.check(options)
    folder, request, run_folder = current_run.wanted(options)
    if run_folder is None:
        with progress.shown(None) as shown:
            run_folder = pipeline.profile(request, folder=folder, on_progress=shown.update)[0]
    report = pipeline.report_of(run_folder)
    if options.json:
        output.json({"format": report.format, "plan": report.plan}, options.json)
    if options.json != "-":
        plan.show(run_folder, report.plan, pipeline.past_predictions(run_folder.parent))
    return 0
