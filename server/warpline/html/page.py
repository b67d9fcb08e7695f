"""The report as one page that needs nothing from anywhere else: no script, no font, no picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from warpline.model.kernel_name import readable
from warpline.model.profile import Profile
from warpline.model.report import Finding, Line, Report
from warpline.view import findings, units
from warpline.view.inside import parts, place
from warpline.view.table import Function, Row, Table, table
from warpline.view.text import printable

#: The page may load and run nothing, so that a report from a stranger can do no harm either.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MOST_USES = 20
_MOST_PARTS = 40


def page(report: Report, profile: Profile, cwd: str = "") -> str:
    """The whole page as text. Everything that comes from the run is escaped."""
    shown = table(report, profile, cwd=cwd)
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(shown.title)} · Warpline</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<h1>{_text(shown.title)}</h1>",
            *(f'<div class="soft">{_text(line)}</div>' for line in shown.summary[2:]),
            _figures(report),
            _findings(report.findings, shown),
            "<h2>Lines</h2>",
            *(_function(function, shown.columns) for function in shown.functions),
            f'<p class="soft">{_text(shown.rest)}</p>' if shown.rest else "",
            _list("Loader workers", shown.workers),
            _list("Marks", shown.marks),
            _list("Fused lines", shown.groups),
            _list("What is not known", (shown.unattributed, *report.notes)),
            "</body>\n</html>\n",
        )
    )


def _text(value: str) -> str:
    return escape(printable(value))


def _figures(report: Report) -> str:
    steps = report.steps
    shown = (
        (units.ms(steps.step_ms), "a step, without the profiler"),
        (units.percentage(steps.device_busy_percent), "of it the device is busy"),
        (units.ms(steps.profiled_step_ms), f"with the profiler, {units.speedup(steps.slowdown)}"),
        (units.count(steps.captured), "steps captured"),
    )
    boxes = (f'<div class="figure"><b>{escape(value)}</b>{escape(name)}</div>' for value, name in shown)
    return f'<div class="figures">{"".join(boxes)}</div>'


def _findings(found: Sequence[Finding], shown: Table) -> str:
    parts = ["<h2>Findings</h2>"]
    for finding in found:
        said = findings.summary(finding, shown.names)
        parts.append(
            f'<div class="finding {escape(said.severity)}"><p><code>{_text(said.place)}</code> '
            f"<b>{_text(said.rule)}</b></p><p>{_text(said.message)}</p>"
            + "".join(f'<p class="soft">{_text(line)}</p>' for line in said.details)
            + "</div>"
        )
    if len(parts) == 1:
        parts.append("<p>No rule saw anything to gain here.</p>")
    return "\n".join(parts)


def _function(function: Function, columns: tuple[str, ...]) -> str:
    heads = "".join(f"<th>{escape(name)}</th>" for name in ("line", "step ms", "", *columns))
    rows = "\n".join(_row(row, columns) for row in function.rows)
    return (
        f"<h3>{_text(function.name)} <span class=soft>{_text(function.place)}, "
        f"{escape(units.ms(function.step_ms))}, {escape(units.percent(function.share))}</span></h3>\n"
        f'<div class="lines"><table><tr>{heads}<th class="source"></th></tr>\n{rows}\n</table></div>'
    )


def _row(row: Row, columns: tuple[str, ...]) -> str:
    if not row.line:
        return f'<tr class="context"><td class="number">⋮</td><td colspan="{len(columns) + 3}"></td></tr>'
    source = f'<td class="source">{_text(row.source)}</td>'
    if row.cost is None:
        blanks = f'<td colspan="{len(columns) + 2}"></td>'
        return f'<tr class="context"><td class="number">{row.line}</td>{blanks}{source}</tr>'
    heat = f"background: rgba(var(--hot), {min(0.75, row.share):.3f})"
    cells = (
        f'<td class="number">{row.line}</td>',
        f'<td class="number" style="{heat}">{escape(units.milliseconds(row.cost.step_ms))}</td>',
        f'<td class="number">{escape(units.percent(row.share))}</td>',
        *(f'<td class="number">{_milliseconds(row.cost, column)}</td>' for column in columns),
        source,
    )
    return f"<tr>{''.join(cells)}</tr>{_detail(row.cost, len(columns) + 4)}"


def _milliseconds(cost: Line, column: str) -> str:
    value: float = getattr(cost, f"{column}_ms")
    return escape(units.milliseconds(value)) if value >= 0.0005 else ""


def _detail(cost: Line, width: int) -> str:
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
    tables = _inside(cost) + _uses("kernels", kernels) + _uses("ops", ops)
    return (
        f'<tr class="detail"><td colspan="{width}"><details><summary>{escape(", ".join(facts))}</summary>'
        f"{tables}</details></td></tr>"
    )


def _inside(cost: Line) -> str:
    """Modules and functions of libraries, each to be unfolded into its lines."""
    found = []
    for part in parts(cost.inside)[:_MOST_PARTS]:
        rows = "".join(
            f"<tr><td>{_text(place(line))}</td><td>{_text(line.text or line.function)}</td>"
            f"<td>{escape(units.ms(line.step_ms))}</td><td>{escape(units.ms(line.device_ms))}</td></tr>"
            for line in part.lines[:_MOST_USES]
        )
        summary = f"{_text(part.name)} {escape(units.ms(part.step_ms))}"
        heads = "".join(f"<th>{head}</th>" for head in ("line", "", "of the step", "device"))
        found.append(f"<details><summary>{summary}</summary><table><tr>{heads}</tr>{rows}</table></details>")
    return "".join(found)


def _uses(heading: str, rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:_MOST_USES]
    )
    more = f"<p>{len(rows) - _MOST_USES} more</p>" if len(rows) > _MOST_USES else ""
    heads = "".join(f"<th>{head}</th>" for head in (heading, "phase", "a step", "time", ""))
    return f"<table><tr>{heads}</tr>{body}</table>{more}"


def _shapes(shapes: Iterable[tuple[int, ...]]) -> str:
    return " ".join("×".join(map(str, shape)) for shape in shapes if shape)


def _list(heading: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return f"<h2>{heading}</h2>\n<ul>{items}</ul>" if items else ""
