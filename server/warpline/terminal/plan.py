"""The plan in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from warpline.model.report import Plan
from warpline.terminal.console import paged
from warpline.view import plan as words
from warpline.view.text import printable

#: Below this width every column wraps.
_NARROW = 80


def show(run: Path, plan: Plan | None, notes: Sequence[str]) -> None:
    """Print ``plan`` of the run in folder ``run``: a row for each stage, then all of it in one line."""
    with paged() as out:
        if plan is None:
            out.print(Text("There is no plan: no finding has a change that can be predicted."))
        else:
            grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
            grid.add_column("step", justify="right", no_wrap=True)
            grid.add_column("gain", justify="right", no_wrap=True)
            grid.add_column("then limited by", no_wrap=out.width >= _NARROW)
            grid.add_column("fix")  # what is long goes on below, in its own column
            for row in words.rows(plan):
                grid.add_row(row.step, row.gain, row.limit, Text(printable(row.what)))
            out.print(grid)
            out.print(Text(printable(words.summary(plan)), style="bold"))
        for note in notes:
            out.print(Text(f"Note: {printable(note)}", style="dim"))
        out.print(Text(f"Run: {run}", style="dim"), soft_wrap=True)
