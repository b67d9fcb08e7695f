"""The report as a table: the hottest functions, their source lines, the cost beside each line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpline.devices import can
from warpline.model.profile import Profile
from warpline.model.report import Line, Report
from warpline.text.lines import lines_of
from warpline.view import composition, text, units
from warpline.view import marks as beside
from warpline.view.inside import Part, largest
from warpline.view.tokens import Kind, kinds

#: Lines below this share of the step are left out, unless --top asks for more.
_LEAST_SHARE = 0.005
_MOST_LINES = 30
#: A line between two costly ones is shown anyway; from this share on with its cost.
_LEAST_BETWEEN = 0.001
#: Up to so many lines between two costly ones are shown for context; more are elided.
_CONTEXT = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One source line. ``cost`` is None for a line shown only for context, ``line`` 0 for a gap."""

    line: int
    source: str
    cost: Line | None = None
    share: float = 0.0  # of the step, 0..1
    inside: tuple[Part, ...] = ()  # what most of it goes to below the user's files
    tokens: tuple[Kind, ...] = ()  # of a line that calls ``generate``


@dataclass(frozen=True, slots=True)
class Function:
    file: str
    name: str
    place: str  # "model.py:31", where its first costly line is
    step_ms: float
    share: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Table:
    title: str  # script and arguments as they would be typed, ``-m module`` where one ran
    typed: str  # the same behind the options without which it would be another run
    summary: tuple[str, ...]
    functions: tuple[Function, ...]
    rest: str  # what the lines not shown cost together; "" when all are shown
    unattributed: str
    columns: tuple[str, ...]  # of "forward backward recompute idle sync", those with anything in them
    names: Mapping[str, str]  # path -> what it is called here
    composition: str = ""  # what the step's time goes to, in one line
    workers: tuple[str, ...] = ()  # what a batch costs in loader workers, line by line
    marks: tuple[str, ...] = ()  # ranges that the user named
    groups: tuple[str, ...] = ()  # lines that run as one kernel


def table(report: Report, profile: Profile, top: int | None = None, cwd: str = "") -> Table:
    """What the terminal and the page show: ``report``, beside the texts as they were when the script ran."""
    sources = profile.sources
    step = report.steps.step_ms
    shown = _with_those_between(_chosen(report.lines, step, top), report.lines, step)
    names = text.names(_files(report), cwd)
    beside_host = can(report.environment.device.kind, "kernels")
    by_function: dict[tuple[str, str], list[Line]] = {}
    for line in shown:
        by_function.setdefault((line.file, line.function), []).append(line)
    functions = [
        _function(lines, sources.get(file, ""), step, names[file], beside_host)
        for (file, _), lines in by_function.items()
    ]
    functions.sort(key=lambda function: -function.step_ms)
    seen = {id(line) for line in shown}
    rest = [line for line in report.lines if id(line) not in seen]
    rest_ms = sum(line.step_ms for line in rest)
    request = profile.manifest.request
    target = ("-m", request.target) if request.module else (text.short_path(report.script, cwd),)
    title = _typed(*target, *report.argv)
    launcher = _typed("--launcher", _typed(*request.launcher)) + " " if request.launcher else ""
    return Table(
        title=title,
        typed=launcher + title,
        summary=(*_summary(report), *_exchanges(profile)),
        functions=tuple(functions),
        rest=f"{len(rest)} more {'line' if len(rest) == 1 else 'lines'}: {_of_step(rest_ms, step)}"
        if rest
        else "",
        unattributed=_unattributed(report),
        columns=tuple(
            column
            for column in ("forward", "backward", "recompute", "idle", "sync")
            if any(getattr(line, f"{column}_ms") >= 0.0005 for line in shown)
        ),
        names=names,
        composition=composition.line(report.composition),
        workers=beside.workers(report.workers, sources, names),
        marks=beside.marks(profile.marks),
        groups=beside.groups(profile.groups, names),
    )


def _files(report: Report) -> set[str]:
    made = {line.file for line in report.workers.lines} if report.workers is not None else set()
    return {line.file for line in report.lines} | made | {report.script}


def _chosen(lines: Sequence[Line], step_ms: float, top: int | None) -> list[Line]:
    ordered = sorted(lines, key=lambda line: (-line.step_ms, -line.device_ms, line.file, line.line))
    if top is not None:
        return ordered[:top]
    # A line that generates with a model of the user's own takes little itself.
    return [
        line
        for line in ordered[:_MOST_LINES]
        if line.step_ms >= _LEAST_SHARE * step_ms or line.tokens is not None
    ]


def _with_those_between(shown: list[Line], lines: Sequence[Line], step_ms: float) -> list[Line]:
    """``shown``, and the lines that are between two of them: without its cost one would seem free."""
    numbers: dict[tuple[str, str], set[int]] = {}
    for line in shown:
        numbers.setdefault((line.file, line.function), set()).add(line.line)
    found = []
    for line in lines:
        near = numbers.get((line.file, line.function), set())
        above = max((number for number in near if number <= line.line), default=None)
        below = min((number for number in near if number >= line.line), default=None)
        if above is None or below is None or below - above > _CONTEXT + 1:
            continue
        if line.line in near or line.step_ms >= _LEAST_BETWEEN * step_ms:
            found.append(line)
    return found


def _typed(*words: str) -> str:
    """One line of a shell that has these words."""
    return " ".join(
        word if word.startswith("~/") else shlex.quote(word) for word in map(text.printable, words)
    )


def _function(lines: list[Line], source: str, step_ms: float, called: str, beside_host: bool) -> Function:
    """One function with its lines, also those between two that cost something."""
    costs = {line.line: line for line in lines}
    written = lines_of(source)

    def row(number: int) -> Row:
        words = written[number - 1] if 0 < number <= len(written) else ""
        cost = costs.get(number)
        share = cost.step_ms / step_ms if cost and step_ms else 0.0
        inside = largest((cost,), step_ms) if cost else ()
        tokens = kinds((cost,), beside_host) if cost else ()
        return Row(number, text.printable(words), cost, share, inside, tokens)

    rows: list[Row] = []
    last = 0
    for number in sorted(costs):
        if last and number - last > _CONTEXT + 1:
            rows.append(Row(0, ""))
        elif last:
            rows += [row(between) for between in range(last + 1, number)]
        rows.append(row(number))
        last = number
    margin = min((len(r.source) - len(r.source.lstrip()) for r in rows if r.source.strip()), default=0)
    total = sum(line.step_ms for line in lines)
    return Function(
        file=lines[0].file,
        name=text.printable(lines[0].function),
        place=f"{called}:{min(costs)}",
        step_ms=total,
        share=total / step_ms if step_ms else 0.0,
        rows=tuple(replace(r, source=r.source[margin:]) for r in rows),
    )


def _summary(report: Report) -> tuple[str, ...]:
    """Step time, device, versions: the lines above the table."""
    steps, environment = report.steps, report.environment
    device = environment.device
    name = text.printable(device.name or device.kind.upper())
    what = f"{device.count} x {name}" if device.count > 1 else name
    plural = "step" if steps.captured == 1 else "steps"
    # The same figure twice: only a trace is there, nothing was timed beside it.
    measured = (
        f"{units.ms(steps.step_ms)} a step, measured only under the profiler"
        if steps.step_ms == steps.profiled_step_ms
        else f"{units.ms(steps.step_ms)} a step, measured without the profiler; "
        f"{units.ms(steps.profiled_step_ms)} with it ({units.slowdown(steps.slowdown)})"
    )
    return (
        measured,
        f"device busy {units.percentage(steps.device_busy_percent)} of the step; "
        f"{steps.captured} {plural} captured",
        f"{what}, torch {text.printable(environment.torch)}, Python {text.printable(environment.python)}",
    )


def _exchanges(profile: Profile) -> tuple[str, ...]:
    """What several ranks' exchanges take, where there are any. Gloo's have no device time."""
    totals = profile.totals
    if "exposed_communication_ms" not in totals:
        return ()
    exposed = units.ms(totals["exposed_communication_ms"])
    whole, waited = totals.get("communication_ms", 0.0), totals.get("collective_wait_ms", 0.0)
    said = f"{units.ms(whole)} a step, {exposed} of it" if whole else f"{exposed} a step"
    late = f", {units.ms(waited)} waiting for the last rank" if waited >= 0.0005 else ""
    return (f"communication between ranks: {said} not overlapped with compute{late}",)


def _unattributed(report: Report) -> str:
    missing = report.unattributed
    return (
        f"Not attributed to any line: {_of_step(missing.step_ms, report.steps.step_ms)}, "
        f"device time {units.ms(missing.device_ms)} "
        f"({units.percentage(100 - report.attributed.device_percent)} of it)"
    )


def _of_step(value_ms: float, step_ms: float) -> str:
    share = units.percent(value_ms / step_ms) if step_ms else "0 %"
    return f"{units.ms(value_ms)} ({share} of the step)"
