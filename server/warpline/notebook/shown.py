"""A report below a cell: as text, and as HTML without scripts, neither of them long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from warpline.model.profile import Profile
from warpline.model.report import Line, Report
from warpline.text.lines import lines_of
from warpline.view import findings, text, units
from warpline.view.table import Table, table

#: Of what is shown below a cell. `warpline show` has the rest.
LINES, FINDINGS, NOTES, CHARACTERS = 15, 10, 10, 300
_NOTHING = "No findings."


@dataclass(frozen=True, slots=True)
class Shown:
    """What a notebook's front end asks for: it shows the richest of the two that it can."""

    plain: str
    page: str

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.plain, "text/html": self.page}

    def __repr__(self) -> str:
        return self.plain


@dataclass(frozen=True, slots=True)
class _Row:
    place: str
    time: str
    share: float  # of the step, 0..1
    code: str


def shown(
    run: Path, report: Report, profile: Profile, placed: Callable[[str], str], top: int | None = None
) -> Shown:
    """``placed`` puts cells in the place of lines of files, in any text of ours."""
    whole = table(report, profile, top, cwd=str(Path.cwd()))
    most = sorted(report.lines, key=lambda line: -line.step_ms)[: top or LINES]
    step = report.steps.step_ms
    rows = [_row(line, whole, profile, placed, step) for line in most if top or line.step_ms >= 0.005 * step]
    rest = step - sum(line.step_ms for line in most[: len(rows)])
    found = [_finding(one, placed) for one in _summaries(report, whole)]
    whole_cell = profile.manifest.step_source == "whole"
    summary = [placed(line) for line in whole.summary]
    if whole_cell:
        summary.insert(0, "the cell as a whole, which makes no steps")
    tail = [f"other lines and unattributed: {units.ms(max(0.0, rest))}"]
    tail += [_cut(placed(note)) for note in report.notes[:NOTES]]
    tail.append(f"run: {run} (warpline show, warpline report --html FILE)")
    return Shown(_plain(summary, rows, found, tail), _html(summary, rows, found, tail))


def _row(line: Line, whole: Table, profile: Profile, placed: Callable[[str], str], step_ms: float) -> _Row:
    written = lines_of(profile.sources.get(line.file, ""))
    code = written[line.line - 1].strip() if line.line <= len(written) else ""
    place = placed(f"{whole.names[line.file]}:{line.line}")
    share = line.step_ms / step_ms if step_ms else 0.0
    return _Row(place, units.ms(line.step_ms), share, _cut(text.printable(code)))


def _summaries(report: Report, whole: Table) -> list[findings.Summary]:
    return [findings.summary(one, whole.names) for one in report.findings[:FINDINGS]]


def _finding(one: findings.Summary, placed: Callable[[str], str]) -> tuple[str, list[str]]:
    heading = f"{placed(one.place)}  {one.rule}"
    return heading, [_cut(placed(words)) for words in (one.message, *one.details)]


def _cut(words: str) -> str:
    return words if len(words) <= CHARACTERS else words[: CHARACTERS - 1] + "…"


def _plain(
    summary: Sequence[str],
    rows: Sequence[_Row],
    summaries: Sequence[tuple[str, list[str]]],
    tail: Sequence[str],
) -> str:
    width = max((len(row.place) for row in rows), default=0)
    lines = [*summary, ""]
    lines += [
        f"{row.place:{width}}  {row.time:>9}  {units.percent(row.share):>6}  {row.code}".rstrip()
        for row in rows
    ]
    lines += ["", "Findings" if summaries else _NOTHING]
    for heading, said in summaries:
        lines += [heading, *(f"    {words}" for words in said)]
    return "\n".join([*lines, "", *tail])


def _html(
    summary: Sequence[str],
    rows: Sequence[_Row],
    summaries: Sequence[tuple[str, list[str]]],
    tail: Sequence[str],
) -> str:
    def each(lines: Sequence[str]) -> str:
        return "".join(f"<div>{escape(line)}</div>" for line in lines)

    cell = '<td style="text-align:left"><code>'
    body = "".join(
        f"<tr>{cell}{escape(row.place)}</code></td><td>{escape(row.time)}</td>"
        f"<td>{escape(units.percent(row.share))}</td>"
        f'<td><meter min="0" max="1" value="{min(1.0, max(0.0, row.share)):.3f}"></meter></td>'
        f"{cell}{escape(row.code)}</code></td></tr>"
        for row in rows
    )
    head = "".join(f"<th>{name}</th>" for name in ("line", "a step", "share", "", "code"))
    said = "".join(
        f"<details><summary><code>{escape(heading)}</code> {escape(lines[0])}</summary>"
        f"{each(lines[1:])}</details>"
        for heading, lines in summaries
    )
    return (
        f"<div>{each(summary)}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{said or each([_NOTHING])}<small>{each(tail)}</small></div>"
    )
