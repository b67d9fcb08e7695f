"""The report by operator or by kernel, in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from warpline.model.profile import Profile
from warpline.model.report import Report
from warpline.terminal.console import paged
from warpline.terminal.report import print_summary
from warpline.view import units
from warpline.view.table import table
from warpline.view.text import printable
from warpline.view.uses import By, uses

_NO_KERNELS = "There are no kernels, because the device is the CPU (use --by operator)."


def show(run: Path, report: Report, profile: Profile, by: By, top: int | None = None) -> None:
    """Print the run in the folder ``run``; ``top`` rows, else those that matter."""
    found = uses(profile, by, top, str(Path.cwd()))
    with paged() as out:
        print_summary(out, table(report, profile, top, cwd=str(Path.cwd())))
        if by == "kernel" and not found.rows:
            out.print(Text(_NO_KERNELS))
        else:
            out.print(Text(f"\n{found.title}", style="bold"))
            grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
            headings = ("device ms", "", "a step", "backward", *(["cpu ms"] if by == "operator" else []))
            for heading in headings:
                grid.add_column(heading, justify="right", no_wrap=True)
            grid.add_column(by, ratio=2, no_wrap=True, overflow="ellipsis")
            grid.add_column("at", ratio=1, no_wrap=True, overflow="ellipsis", style="cyan")
            for row in found.rows:
                cells = [units.milliseconds(row.device_ms), units.percent(row.share), units.count(row.count)]
                cells.append(units.milliseconds(row.backward_ms) if row.backward_ms else "")
                cells += [units.milliseconds(row.cpu_ms)] if row.cpu_ms is not None else []
                cells += [printable(row.name), ", ".join(row.places)]
                grid.add_row(*map(Text, cells))
            out.print(grid)
            if found.rest:
                out.print(Text(found.rest, style="dim"))
        for note in report.notes:
            out.print(Text(f"Note: {printable(note)}", style="dim"))
        out.print(Text(f"Run: {run}", style="dim"), soft_wrap=True)
