"""A kernel from the inside, in the terminal."""

from __future__ import annotations

from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from warpline.terminal.console import paged
from warpline.view.kernel import KernelTable


def show(shown: KernelTable) -> None:
    with paged() as out:
        for line in filter(None, shown.summary):
            out.print(Text(line, style="bold"))
        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for heading in ("line", "", "memory", "warps waiting, of all samples"):
            grid.add_column(heading, no_wrap=heading == "line")
        for row in shown.rows:
            grid.add_row(Text(row.place, style="cyan"), Text(row.source), Text(row.memory), Text(row.stalls))
        out.print(grid)
        for advice in shown.advice:
            out.print(Padding(Text(advice, style="dim"), (1, 0, 0, 0)))
