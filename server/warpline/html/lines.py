"""The costly lines by function as plain tables: for a browser that runs no scripts, and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpline.html.escaped import text
from warpline.model.kernel_name import readable
from warpline.model.report import Line
from warpline.view import units
from warpline.view.inside import Entry, opened
from warpline.view.table import Function, Row, Table
from warpline.view.tokens import Kind

_MOST_USES = 20
#: Classes heat0 to heat10 of the style sheet, which allows no styles in the text.
_HEATS = 10


def listing(shown: Table, step_ms: float) -> str:
    """One table for each function, and what the rest adds up to. ``step_ms``: of the whole step."""
    rest = f'<p class="soft">{text(shown.rest)}</p>' if shown.rest else ""
    return "\n".join(_function(function, shown.columns, step_ms) for function in shown.functions) + rest


def _function(function: Function, columns: tuple[str, ...], step_ms: float) -> str:
    heads = "".join(f"<th>{text(name)}</th>" for name in ("line", "step ms", "", *columns))
    rows = "\n".join(_row(row, columns, step_ms) for row in function.rows)
    return (
        f'<h3>{text(function.name)} <span class="soft">{text(function.place)}, '
        f"{text(units.ms(function.step_ms))}, {text(units.percent(function.share))}</span></h3>\n"
        f'<div class="lines"><table><tr>{heads}<th class="source"></th></tr>\n{rows}\n</table></div>'
    )


def _row(row: Row, columns: tuple[str, ...], step_ms: float) -> str:
    if not row.line:
        return f'<tr class="context"><td class="number">⋮</td><td colspan="{len(columns) + 3}"></td></tr>'
    source = f'<td class="source">{text(row.source)}</td>'
    if row.cost is None:
        blanks = f'<td colspan="{len(columns) + 2}"></td>'
        return f'<tr class="context"><td class="number">{row.line}</td>{blanks}{source}</tr>'
    heat = f"heat{min(_HEATS, round(row.share * _HEATS / 0.75))}"
    cells = (
        f'<td class="number">{row.line}</td>',
        f'<td class="number {heat}">{text(units.milliseconds(row.cost.step_ms))}</td>',
        f'<td class="number">{text(units.percent(row.share))}</td>',
        *(f'<td class="number">{_milliseconds(row.cost, column)}</td>' for column in columns),
        source,
    )
    passes = "".join(_kind(kind, step_ms, len(columns)) for kind in row.tokens)
    return f"<tr>{''.join(cells)}</tr>{passes}{_detail(row.cost, len(columns) + 4, step_ms)}"


def _kind(kind: Kind, step_ms: float, columns: int) -> str:
    """The passes of one kind, beneath the line that calls ``generate``."""
    share = units.percent(kind.step_ms / step_ms) if step_ms else ""
    return (
        f'<tr class="context"><td></td><td class="number">{text(units.milliseconds(kind.step_ms))}</td>'
        f'<td class="number">{text(share)}</td><td colspan="{columns}"></td>'
        f'<td class="source">{text(kind.name)}: {text(kind.about)}</td></tr>'
    )


def _milliseconds(cost: Line, column: str) -> str:
    value: float = getattr(cost, f"{column}_ms")
    return text(units.milliseconds(value)) if value >= 0.0005 else ""


def _detail(cost: Line, width: int, step_ms: float) -> str:
    """What the line is made of, folded away: numbers, kernels, ops."""
    facts = [
        f"host {units.ms(cost.cpu_ms)}",
        f"device {units.ms(cost.device_ms)}",
        f"{units.count(cost.calls)} calls",
        f"{units.count(cost.launches)} launches",
    ]
    if cost.memory_bytes:
        facts.append(f"{units.size(cost.memory_bytes)} held at the step's memory peak")
    if cost.roofline:
        facts.append(
            f"{cost.roofline.bound}-bound: {units.percentage(cost.roofline.percent_of_peak)} of peak "
            f"({units.rate(cost.roofline.flops, 'FLOP')}, {units.size(cost.roofline.bytes)})"
        )
    kernels = [
        (readable(k.name), k.phase, units.count(k.count), units.ms(k.device_ms), "") for k in cost.kernels
    ]
    ops = [
        (o.name, o.phase, units.count(o.count), units.ms(o.device_ms), _shapes(o.shapes)) for o in cost.ops
    ]
    tables = _inside(opened((cost,), step_ms)) + _uses("kernels", kernels) + _uses("ops", ops)
    return (
        f'<tr class="detail"><td colspan="{width}"><details><summary>{text(", ".join(facts))}</summary>'
        f"{tables}</details></td></tr>"
    )


def _inside(entries: Iterable[Entry]) -> str:
    """Modules and functions of libraries, each to be unfolded into those in it and into its lines."""
    found, rows = [], []
    for entry in entries:
        times = text(units.ms(entry.step_ms))
        if entry.entries:
            summary = f"<summary>{text(entry.name)} {times}</summary>"
            found.append(f"<details>{summary}{_inside(entry.entries)}</details>")
        else:
            rows.append(
                f"<tr><td>{text(entry.name)}</td><td>{text(entry.about)}</td>"
                f"<td>{times}</td><td>{text(units.ms(entry.device_ms))}</td></tr>"
            )
    heads = "".join(f"<th>{head}</th>" for head in ("line", "", "of the step", "device"))
    return "".join(found) + (f"<table><tr>{heads}</tr>{''.join(rows)}</table>" if rows else "")


def _uses(heading: str, rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in rows[:_MOST_USES]
    )
    more = f"<p>{len(rows) - _MOST_USES} more</p>" if len(rows) > _MOST_USES else ""
    heads = "".join(f"<th>{head}</th>" for head in (heading, "phase", "a step", "time", ""))
    return f"<table><tr>{heads}</tr>{body}</table>{more}"


def _shapes(shapes: Iterable[tuple[int, ...]]) -> str:
    return " ".join("×".join(map(str, shape)) for shape in shapes if shape)
