"""The runs of this project, the newest first: script, arguments, date, step time, size.

--prune removes old ones: those beyond keep-runs, older than keep-days, or beyond keep-mb of
[tool.warpline]. The newest of each script and arguments always stays.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from warpline.commands import output


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prune", action="store_true", help="remove old runs")
    parser.add_argument(
        "--json", metavar="FILE", nargs="?", const="-", help="write JSON to FILE ('-': standard output)"
    )


def run(options: argparse.Namespace) -> int:
    output.check(options)
    from warpline import keeping, project, runs
    from warpline.terminal import runs as terminal

    folder = runs.nearest(Path.cwd())
    removed = keeping.prune(folder, project.settings(folder)) if options.prune else []
    left = keeping.listed(folder)
    if options.json:
        output.json({"format": 1, "folder": str(folder), "runs": left, "removed": removed}, options.json)
    if options.json != "-":
        terminal.show(folder, left, removed, pruned=options.prune)
    return 0
