"""The plan in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from warpline.model.report import Plan
from warpline.terminal.console import paged
from warpline.view import plan as words
from warpline.view.text import printable


def show(run: Path, plan: Plan | None, notes: Sequence[str]) -> None:
    """Print ``plan`` of the run in folder ``run``: a row for each stage, then all of it in one line."""
    with paged() as out:
        if plan is None:
            out.print(Text("There is no plan: no finding has a predicted gain."))
        else:
            rows = words.rows(plan)
            width = max(len(row.limit) for row in rows)
            head = f"{'step':>8}  {'gain':>6}  {'then limited by':{width}}  fix"
            out.print(Text(head, style="dim"))
            for row in rows:
                numbers = f"{row.step:>8}  {row.gain:>6}  {row.limit:{width}}  "
                out.print(Text(numbers + printable(row.what)))
            out.print(Text(printable(words.summary(plan)), style="bold"))
        for note in notes:
            out.print(Text(f"Note: {printable(note)}", style="dim"))
        out.print(Text(f"Run: {run}", style="dim"), soft_wrap=True)
