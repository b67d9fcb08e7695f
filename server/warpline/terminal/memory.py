"""The report by memory, in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from warpline.model.profile import Profile
from warpline.model.report import Report
from warpline.terminal.console import paged
from warpline.terminal.report import print_summary
from warpline.view import units
from warpline.view.memory import holders
from warpline.view.table import table
from warpline.view.text import printable

_NOTHING = "No line held memory at the peak, or the trace has no allocations."


def show(run: Path, report: Report, profile: Profile, top: int | None = None) -> None:
    """Print the run in the folder ``run``; ``top`` rows, else those that matter."""
    found = holders(profile, top, str(Path.cwd()))
    with paged() as out:
        print_summary(out, table(report, profile, top, cwd=str(Path.cwd())))
        out.print(Text(f"\n{found.title}" if found.rows else _NOTHING, style="bold"))
        grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
        for heading in ("at the peak", "", "kept a step"):
            grid.add_column(heading, justify="right", no_wrap=True)
        grid.add_column("at", no_wrap=True, overflow="ellipsis", style="cyan", max_width=40)
        grid.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
        for row in found.rows:
            kept = units.size(row.kept_bytes) if row.kept_bytes else ""
            cells = (units.size(row.held_bytes), units.percent(row.share), kept, row.place)
            grid.add_row(*map(Text, cells), Text(printable(row.source)))
        if found.rows:
            out.print(grid)
        for line in (found.rest, *found.said):
            if line:
                out.print(Text(printable(line), style="dim"))
        for note in report.notes:
            out.print(Text(f"Note: {printable(note)}", style="dim"))
        out.print(Text(f"Run: {run}", style="dim"), soft_wrap=True)
