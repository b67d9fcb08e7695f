"""The ranks of a job in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from warpline.ranks.merge import Merged, Straggler
from warpline.terminal.console import paged
from warpline.view import units
from warpline.view.text import printable, short_path


def show(merged: Merged, top: int) -> None:
    """Print the ``top`` lines with the largest means, and the rank that the others wait for."""
    with paged() as out:
        count = max(merged.world, len(merged.ranks))
        out.print(f"{len(merged.ranks)} of {count} ranks, {units.ms(merged.step_ms)} a step")
        if merged.straggler is not None:
            out.print(Text(_late(merged.straggler)), soft_wrap=True)
        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for heading in ("line", "mean ms", "slowest", "on rank", "spread", "function"):
            grid.add_column(heading, justify="left" if heading in ("line", "function") else "right")
        for line in merged.lines[:top]:
            grid.add_row(
                Text(printable(f"{short_path(line.file, str(Path.cwd()))}:{line.line}")),
                units.ms(line.mean_ms),
                units.ms(line.slowest_ms),
                str(line.slowest_rank),
                units.ms(line.spread_ms),
                Text(printable(line.function)),
            )
        out.print(grid)
        for note in merged.notes:
            out.print(Text(printable(f"Note: {note}")))


def _late(late: Straggler) -> str:
    said = f"rank {late.rank} comes last in every step: the others wait {units.ms(late.late_ms)} for it"
    if not late.file:
        return said
    where = f"{short_path(late.file, str(Path.cwd()))}:{late.line}"
    return printable(f"{said}; it spends {units.ms(late.more_ms)} more than they do at {where}")
