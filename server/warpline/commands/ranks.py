"""The ranks of one job side by side: the cost of each line on each rank, and the rank that the others wait
for.

PATH is a folder with the traces of all ranks, as tensorboard_trace_handler writes them, a run folder with
its ranks/, or several of them. Ranks are read in parallel, on all cores of this machine or on a Dask cluster
whose workers see the same paths; only small tables are collected.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from warpline.commands import output


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="traces or runs of ranks, or their folder")
    parser.add_argument("--dask", metavar="ADDRESS", default="", help="a Dask scheduler, tcp://HOST:PORT")
    parser.add_argument("--top", type=output.rows, default=20, metavar="N", help="lines to print (20)")
    parser.add_argument(
        "--json", metavar="FILE", nargs="?", const="-", help="write JSON to FILE ('-': standard output)"
    )


def run(options: argparse.Namespace) -> int:
    output.check(options)
    from warpline import ranks
    from warpline.model.problem import Problem
    from warpline.ranks.paths import of_ranks
    from warpline.terminal import ranks as terminal

    tables = ranks.reduced(of_ranks([Path(path) for path in options.paths]), options.dask)
    if all(table.problem for table in tables):
        raise Problem(tables[0].problem)
    merged = ranks.merge(tables)
    if options.json:
        output.json({"format": 1, **asdict(merged)}, options.json)
    if options.json != "-":
        terminal.show(merged, options.top)
    return 0
