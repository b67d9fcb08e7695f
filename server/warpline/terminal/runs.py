"""The list of runs in the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.table import Table as Grid
from rich.text import Text

from warpline.keeping import Kept
from warpline.terminal.console import paged
from warpline.view import units
from warpline.view.text import printable, short_path


def show(folder: Path, kept: Sequence[Kept], removed: Sequence[Kept], pruned: bool) -> None:
    """Print ``kept``, and how much room was made. ``pruned``: that was asked for."""
    with paged() as out:
        grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        for heading in ("run", "date", "step", "size"):
            grid.add_column(heading, no_wrap=True, justify="right" if heading in ("step", "size") else "left")
        grid.add_column("script", overflow="fold")
        for run in kept:
            grid.add_row(
                Text(printable(run.run)),
                Text(f"{datetime.fromtimestamp(run.created_s):%Y-%m-%d %H:%M}"),
                Text(units.ms(run.step_ms) if run.step_ms is not None else ""),
                Text(units.size(run.bytes)),
                Text(typed(run, str(Path.cwd()))),
            )
        if kept:
            out.print(grid)
        total = units.size(sum(run.bytes for run in kept))
        out.print(Text(f"{count(kept)}, {total}, in {folder}", style="dim"), soft_wrap=True)
        if pruned:
            freed = units.size(sum(run.bytes for run in removed))
            out.print(Text(f"{count(removed)} removed, {freed}" if removed else "nothing to remove"))


def typed(run: Kept, cwd: str) -> str:
    """The command as it would be typed."""
    target = ["-m", run.script] if run.module else [short_path(run.script, cwd)]
    words = [printable(word) for word in (*target, *run.argv)]
    return " ".join(word if word.startswith("~/") else shlex.quote(word) for word in words)


def count(kept: Sequence[Kept]) -> str:
    """``1 run``, ``12 runs``."""
    return "1 run" if len(kept) == 1 else f"{len(kept)} runs"
