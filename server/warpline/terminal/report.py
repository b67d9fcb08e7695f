"""The report in the terminal: the step on top, costed source lines, findings, what is missing."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text

from warpline.model.profile import Profile
from warpline.model.report import Report
from warpline.terminal.console import paged
from warpline.view import findings, plan, units
from warpline.view.inside import Part
from warpline.view.table import Function, Row, Table, table
from warpline.view.text import printable
from warpline.view.tokens import Kind

_SEVERITY = {
    "error": ("✖", "bold red"),
    "warning": ("▲", "bold yellow"),
    "information": ("●", "cyan"),
    "hint": ("·", "dim"),
}
_BAR_WIDTH = 6
#: Below this width only the step's share is shown beside the source.
_NARROW = 90


def show(run: Path, report: Report, profile: Profile, top: int | None = None) -> None:
    """Print ``report`` of the folder ``run``. ``top``: how many lines are shown, else those that matter."""
    shown = table(report, profile, top, cwd=str(Path.cwd()))
    with paged() as out:
        print_summary(out, shown)
        for function in shown.functions:
            _print_function(out, function, shown.columns, report.steps.step_ms)
        if shown.rest:
            out.print(Text(f"\n{shown.rest}", style="dim"))
        sections = (("Loader workers", shown.workers), ("Marks", shown.marks), ("Fused lines", shown.groups))
        for heading, lines in sections:
            if lines:
                out.print(Text(f"\n{heading}", style="bold"))
            for line in lines:
                out.print(Padding(Text(line), (0, 0, 0, 2)))
        _print_findings(out, report, shown)
        if report.plan is not None and len(report.plan.steps) > 1:
            out.print(Text(f"\nPlan: {printable(plan.summary(report.plan))} (warpline plan)"))
        out.print(Text(f"\n{shown.unattributed}", style="dim"))
        for note in report.notes:
            out.print(Text(f"Note: {printable(note)}", style="dim"))
        out.print(Text(f"Run: {run}", style="dim"), soft_wrap=True)


def print_summary(out: Console, shown: Table) -> None:
    """The step: what ran, how long it takes, what its time goes to."""
    out.print(Rule(Text(shown.title, style="bold"), align="left", style="dim"))
    for line in shown.summary:
        out.print(Text(line))
    if shown.composition:
        out.print(Text(shown.composition, style="bold"))


def _print_function(out: Console, function: Function, columns: tuple[str, ...], step_ms: float) -> None:
    """A function's heading and its source lines with their costs."""
    columns = columns if out.width >= _NARROW else ()
    heading = Text("\n")
    heading.append(function.name, style="bold")
    heading.append(f"  {function.place}", style="cyan")
    heading.append(f"  {units.ms(function.step_ms)}, {units.percent(function.share)}")
    out.print(heading)
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", expand=True)
    grid.add_column("line", justify="right", style="dim", no_wrap=True)
    grid.add_column("step ms", justify="right", no_wrap=True, min_width=7)
    grid.add_column("", justify="right", no_wrap=True, min_width=5)
    grid.add_column("", width=_BAR_WIDTH, no_wrap=True)
    for column in columns:
        grid.add_column(column, justify="right", no_wrap=True, min_width=7)
    grid.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    for row in function.rows:
        grid.add_row(*_cells(row, columns, out))
        for kind in row.tokens:
            grid.add_row(*_kind_cells(kind, columns, step_ms))
        for part in row.inside:
            grid.add_row(*_part_cells(part, columns, step_ms))
    out.print(grid)


def _cells(row: Row, columns: tuple[str, ...], out: Console) -> list[Text]:
    if not row.line:
        return [Text("⋮", style="dim")]
    source = _source(row.source, out) if row.cost else Text(row.source, style="dim")
    if row.cost is None:
        return [Text(str(row.line)), *(Text() for _ in range(3 + len(columns))), source]
    style = "bold red" if row.share >= 0.2 else "yellow" if row.share >= 0.05 else ""
    return [
        Text(str(row.line)),
        Text(units.milliseconds(row.cost.step_ms), style=style),
        Text(units.percent(row.share), style=style),
        Text(_bar(row.share), style=style or "dim"),
        *(Text(_milliseconds(getattr(row.cost, f"{column}_ms")), style="dim") for column in columns),
        source,
    ]


def _part_cells(part: Part, columns: tuple[str, ...], step_ms: float) -> list[Text]:
    """One module or function of a library, beneath the line that leads there."""
    name = Text("  └ ", style="dim")
    name.append(part.name)
    name.append(f"  {part.place}", style="dim cyan")
    times = (units.milliseconds(part.step_ms), units.percent(part.step_ms / step_ms))
    split = (_milliseconds(part.total(f"{column}_ms")) for column in columns)
    return [
        Text(),
        *(Text(time, style="dim") for time in times),
        Text(),
        *(Text(time, style="dim") for time in split),
        name,
    ]


def _kind_cells(kind: Kind, columns: tuple[str, ...], step_ms: float) -> list[Text]:
    """The passes of one kind, beneath the line that calls ``generate``."""
    name = Text("  ├ ", style="dim")
    name.append(kind.name)
    name.append(f"  {kind.about}", style="dim")
    times = (units.milliseconds(kind.step_ms), units.percent(kind.step_ms / step_ms))
    return [
        Text(),
        *(Text(time, style="dim") for time in times),
        *(Text() for _ in range(1 + len(columns))),
        name,
    ]


def _milliseconds(value: float) -> str:
    return units.milliseconds(value) if value >= 0.0005 else ""


def _bar(share: float) -> str:
    whole, eighths = divmod(round(max(0.0, min(1.0, share)) * _BAR_WIDTH * 8), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()


def _source(line: str, out: Console) -> Text:
    if not out.is_terminal:
        return Text(line)
    from rich.syntax import Syntax  # takes a third of this module's import

    text = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(line)
    text.rstrip()
    return text


def _print_findings(out: Console, report: Report, shown: Table) -> None:
    """The findings below the table, or one line if there are none."""
    if not report.findings:
        out.print(Text("No findings."))
        return
    out.print(Text("\nFindings", style="bold"))
    for finding in report.findings:
        said = findings.summary(finding, shown.names)
        mark, style = _SEVERITY[said.severity]
        heading = Text(f"{mark} ", style=style)
        heading.append(said.place, style="cyan")
        heading.append(f"  {said.rule}", style="bold")
        out.print(heading)
        out.print(Padding(Text(said.message), (0, 0, 0, 2)))
        for line in said.details:
            out.print(Padding(Text(line, style="dim"), (0, 0, 0, 4)))
    safe = sum(fix.applicability == "safe" for finding in report.findings for fix in finding.fixes)
    if any(finding.fixes for finding in report.findings):
        out.print(
            Text(f"\nwarpline fix --diff {shown.typed} shows the fixes ({safe} safe), --measure times them")
        )
