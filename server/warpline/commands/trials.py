"""How trials of fixes are shown: one row a candidate, with what was measured and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table as Grid
from rich.text import Text

from warpline.measure.contest import Outcome
from warpline.measure.results import Results
from warpline.terminal.console import paged
from warpline.view import units


def show(
    outcomes: Sequence[Outcome], found: Results, predicted: dict[str, float], notes: Sequence[str]
) -> None:
    """Print the table. ``predicted``: speed-ups by candidate key, where there are any."""
    with paged() as out:
        out.print(Text(f"The script as it is: {units.ms(found.baseline_step_ms)} a step", style="bold"))
        grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
        for heading in ("step ms", "measured", "95 % interval", "predicted", "loss drift", "memory"):
            grid.add_column(heading, justify="right", no_wrap=True)
        grid.add_column("what was tried", ratio=1, overflow="fold")
        grid.add_column("verdict", ratio=1, overflow="fold")
        for one in outcomes:
            grid.add_row(*map(Text, _numbers(one, predicted)), Text(one.candidate.title), _verdict(one))
        if outcomes:
            out.print(grid)
        out.print(Text(_summary(outcomes, found), style="bold"))
        for note in notes:
            out.print(Text(f"Note: {note}", style="dim"))


def _numbers(one: Outcome, predicted: dict[str, float]) -> tuple[str, ...]:
    seen = one.measured
    expected = predicted.get(one.candidate.key)
    said = f"{expected:.2f}" if expected is not None else ""
    if seen is None:
        return ("", "", "", said, "", "")
    bounded = seen.low > 0 and math.isfinite(seen.high)
    return (
        units.milliseconds(one.step_ms) if one.step_ms is not None else "",
        f"{seen.speedup:.2f}",
        f"{seen.low:.2f} to {seen.high:.2f}" if bounded else "",
        said,
        f"{seen.loss_drift:.1g}" if seen.loss_drift is not None else "",
        f"{seen.memory_ratio:.2f}" if seen.memory_ratio is not None else "",
    )


def _verdict(one: Outcome) -> Text:
    return Text(f"kept: {one.reason}" if one.kept else one.reason, style="green" if one.kept else "")


def _summary(outcomes: Sequence[Outcome], found: Results) -> str:
    if not outcomes:
        return "There is no fix to try."
    if not found.best.fixes:
        return "No change is proven to be faster."
    best = next(one for one in outcomes if one.kept and one.candidate.fixes == found.best.fixes)
    return f"Best: {best.candidate.title}, {units.speedup(found.best.speedup)} as fast"
