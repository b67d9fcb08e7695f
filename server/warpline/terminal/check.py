"""Budgets and how they were kept, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table as Grid
from rich.text import Text

from warpline.check.judge import Verdict
from warpline.check.places import Run
from warpline.terminal.console import paged
from warpline.view import units
from warpline.view.text import printable

_SAID = {
    "held": ("held", "green"),
    "exceeded": ("EXCEEDED", "bold red"),
    "unsure": ("over, within noise", "yellow"),
    "unknown": ("not in the baseline", "yellow"),
}


def show(verdicts: Sequence[Verdict], runs: Sequence[Run], baseline: Sequence[Run], *, failed: bool) -> None:
    """A row for each limit, then all of them in one line. Times are milliseconds of a step."""
    with paged() as out:
        if verdicts:
            grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
            for heading in ("ms", "limit ms", "noise ms", "baseline ms"):
                grid.add_column(heading, justify="right", no_wrap=True)
            grid.add_column("budget", overflow="fold")
            grid.add_column("", no_wrap=True)
            for one in verdicts:
                said, style = _SAID[one.outcome]
                values = (one.ms, one.limit_ms, one.noise_ms, one.baseline_ms)
                cells = (Text("" if ms is None else units.milliseconds(ms)) for ms in values)
                grid.add_row(*cells, Text(printable(f"{one.budget}: {one.limit}")), Text(said, style=style))
            out.print(grid)
            count = sum(one.outcome == "exceeded" for one in verdicts)
            words = (
                f"{count} of {len(verdicts)} budgets exceeded"
                if count
                else f"no budget of {len(verdicts)} exceeded"
            )
            out.print(Text(words, style="bold red" if failed else "bold"))
        for name, side in (("Run", runs), ("Baseline", baseline)):
            for one_run in side:
                out.print(Text(f"{name}: {one_run.name}", style="dim"), soft_wrap=True)
        if verdicts and (len(runs) == 1 or len(baseline) == 1):
            out.print(
                Text(
                    "Note: with a single run, the noise is that of its own steps; give several runs, or "
                    "set noise_percent, to include the difference between runs",
                    style="dim",
                )
            )
