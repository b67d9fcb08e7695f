"""The counters of a kernel, and two versions side by side, in the terminal."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from warpline.terminal.console import paged
from warpline.view.kernel import KernelTable
from warpline.view.kernel_compare import KernelComparison


def show(shown: KernelTable) -> None:
    """Print the counters of one kernel by source line, and what to do about them."""
    with paged() as out:
        for line in filter(None, shown.summary):
            out.print(Text(line, style="bold"))
        grid = _grid("line", "used of a sector", "warps waiting", source=True)
        for row in shown.rows:
            grid.add_row(Text(row.place, style="cyan"), *map(Text, (row.memory, row.stalls, row.source)))
        out.print(grid)
        for advice in shown.advice:
            out.print(Padding(Text(advice, style="dim"), (1, 0, 0, 0)))


def show_comparison(shown: KernelComparison) -> None:
    """Print the counters of two versions of a kernel side by side."""
    with paged() as out:
        out.print(Text(shown.summary, style="bold"))
        figures = _grid("", "before", "after", "")
        for figure in shown.figures:
            figures.add_row(figure.name, figure.before, figure.after, figure.change)
        out.print(figures)
        lines = _grid("line", "bytes used", "after", "warps waiting", "after", source=True)
        for row in shown.lines:
            cells = (*row.memory, *row.stalls, row.source)
            lines.add_row(Text(row.place, style="cyan"), *map(Text, cells))
        out.print(lines)
        for note in shown.notes:
            out.print(Text(f"Note: {note}", style="dim"))


def _grid(*headings: str, source: bool = False) -> Grid:
    """Columns as wide as they must be; with ``source`` one more, for code, in the room that is left."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", expand=source)
    for heading in headings:
        grid.add_column(heading, no_wrap=True)
    if source:
        grid.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    return grid
