"""Two runs side by side in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from warpline.terminal.console import paged
from warpline.view import units
from warpline.view.compare import Comparison, Pair

_MOST = 30
#: Differences below this share of the longer step are left out, unless --top asks for more.
_LEAST_SHARE = 0.002
_STYLE = {"same": "", "edited": "cyan", "added": "green", "removed": "dim strike"}


def show(comparison: Comparison, before: Path, after: Path, top: int | None = None) -> None:
    """Print ``comparison`` of the run folders ``before`` and ``after``."""
    with paged() as out:
        out.print(Text(f"before: {before}\nafter:  {after}", style="dim"), soft_wrap=True)
        for line in comparison.summary:
            out.print(Text(line, style="bold"))
        pairs = _chosen(comparison, top)
        out.print(_grid(pairs, comparison, out))
        old, new = comparison.unattributed
        rest = len(comparison.pairs) - len(pairs)
        if rest:
            out.print(Text(f"{rest} more lines differ by less", style="dim"))
        out.print(
            Text(f"Not attributed to any line: {units.ms(old)} before, {units.ms(new)} after", style="dim")
        )
        for note in comparison.notes:
            out.print(Text(f"Note: {note}", style="dim"))


def _chosen(comparison: Comparison, top: int | None) -> list[Pair]:
    if top is not None:
        return list(comparison.pairs[:top])
    total = max(
        sum(pair.before_ms for pair in comparison.pairs), sum(pair.after_ms for pair in comparison.pairs)
    )
    return [p for p in comparison.pairs[:_MOST] if abs(p.difference_ms) >= _LEAST_SHARE * total]


def _grid(pairs: list[Pair], comparison: Comparison, out: Console) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
    for heading in ("before ms", "after ms", "change"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("line", no_wrap=True, overflow="ellipsis", max_width=out.width // 3)
    grid.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    for pair in pairs:
        difference = pair.difference_ms
        style = "green" if difference < 0 else "red" if difference else ""
        sign = "-" if difference < 0 else "+" if difference else ""
        grid.add_row(
            Text(units.milliseconds(pair.before_ms) if pair.before else ""),
            Text(units.milliseconds(pair.after_ms) if pair.after else ""),
            Text(f"{sign}{units.milliseconds(abs(difference))}", style=style),
            Text(_place(pair, comparison), style="cyan"),
            Text(
                f"{pair.source}  ({pair.change})" if pair.change != "same" else pair.source,
                style=_STYLE[pair.change],
            ),
        )
    return grid


def _place(pair: Pair, comparison: Comparison) -> str:
    """``train.py:8``, or ``train.py:8 > 11`` for a line that moved."""
    sides = [side for side in (pair.before, pair.after) if side]
    path, line = sides[0]
    place = f"{comparison.names[path]}:{line}"
    if len(sides) == 1 or sides[0] == sides[1]:
        return place
    other, moved = sides[1]
    return f"{place} > {moved}" if other == path else f"{place} > {comparison.names[other]}:{moved}"
