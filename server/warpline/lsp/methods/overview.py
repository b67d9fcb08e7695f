"""warpline/overview: the results of a run for views that LSP does not have, such as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from warpline.devices import can
from warpline.lsp import convert
from warpline.lsp.server import Server
from warpline.lsp.state.cells import notebook_of
from warpline.lsp.state.results import Results
from warpline.lsp.state.session import Session
from warpline.model.report import Finding, Line
from warpline.text.lines import content
from warpline.view import change, gains, units
from warpline.view.anchor_lines import Standing
from warpline.view.diagnostics import notices
from warpline.view.hints import share
from warpline.view.inside import Entry, opened, place
from warpline.view.lenses import CALLED

_TOP = 200


def overview(ls: Server, params: Any) -> dict[str, Any] | None:
    """A run's step time, lines, totals and findings. None where there is no run."""
    session = asked_for(ls, params)
    if session is None:
        return None
    results = session.results
    device = results.report.environment.device
    before = results.before
    return {
        "run": str(results.run),
        "script": results.report.script,
        "argv": list(results.report.argv),
        "again": convert.uri(notebook_of(session.loaded) or results.report.script),
        "stepMs": results.step_ms,
        "previousStepMs": before.step_ms if before else None,
        "change": change.of_step(before.step_ms, results.step_ms, before.noise) if before else None,
        "noise": results.noise,
        "label": f"{units.ms(results.step_ms)} a step",
        "summary": summary(results),
        "createdMs": results.created_ns // 1_000_000,
        "device": f"{device.kind}: {device.name}" if device.name else device.kind,
        "deviceBusyPercent": results.report.steps.device_busy_percent,
        "lines": _lines(session, results),
        "totals": _totals(results),
        "findings": [_finding(session, results, f) for f in results.report.findings],
        "notes": list(results.report.notes),
    }


def summary(results: Results) -> str:
    """``52.4 ms a step, 3 findings, best 1.25x predicted``: the result of a profile."""
    found = results.report.findings
    count = "no findings" if not found else "1 finding" if len(found) == 1 else f"{len(found)} findings"
    return f"{units.ms(results.step_ms)} a step, {count}{gains.best(found)}"


def asked_for(ls: Server, params: Any) -> Session | None:
    """The session of a request's ``uri``; the newest of all where it names none."""
    uri = params.get("uri") if isinstance(params, Mapping) else None
    path = convert.path(uri) if isinstance(uri, str) else None
    return None if isinstance(uri, str) and path is None else ls.folders.newest(path)


def _lines(session: Session, results: Results) -> list[dict[str, Any]]:
    costly: dict[tuple[str, int], list[Line]] = {}
    for cost in results.report.lines:
        costly.setdefault((cost.file, cost.line), []).append(cost)
    ranked = sorted(costly.items(), key=lambda item: -sum(cost.step_ms for cost in item[1]))
    beside = can(results.report.environment.device.kind, "kernels")
    found = []
    for (file, run_line), costs in ranked:
        anchor = session.anchor(file)
        line = anchor.where(run_line - 1) if anchor is not None else -1
        if anchor is None or line < 0:
            continue
        stands = Standing(line, tuple(costs), anchor.stale(line))
        part = share(stands.step_ms, results.step_ms)
        found.append(
            {
                "uri": convert.uri(file),
                "line": line,
                "function": costs[0].function,
                "text": content(session.lines(file)[line]).strip(),
                "share": part,
                "stepMs": stands.step_ms,
                "label": _label(stands.step_ms, results),
                "stale": stands.stale,
                "inside": [_inside(session, entry) for entry in opened(costs, results.step_ms, beside)],
            }
        )
        if len(found) == _TOP:
            break
    return found


def _label(ms: float, results: Results) -> str:
    return f"{units.percent(share(ms, results.step_ms))}  {units.ms(ms)}"


def _totals(results: Results) -> list[dict[str, str | None]]:
    """What the lines of each file and of each function add to the step; ``function`` is "" for the file.
    ``total``: with the functions that it calls, where it calls any and that is known."""
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for line in results.report.lines:
        for function in dict.fromkeys(("", line.function)):
            sums[line.file, function] += line.step_ms
    found: list[dict[str, str | None]] = []
    for (file, function), ms in sums.items():
        total = results.totals.get((file, function.replace(".<locals>", "")))
        more = total is not None and total - ms >= CALLED * results.step_ms
        words = _label(total, results) if total is not None and more else None
        found.append(
            {"uri": convert.uri(file), "function": function, "label": _label(ms, results), "total": words}
        )
    return found


def _inside(session: Session, entry: Entry) -> dict[str, Any]:
    """An entry of an opened line, with those in it. A line of the user's is where it stands now."""
    at, results = entry.at, session.results
    uri, line, name = None, -1, ""
    if at is not None:
        line = _where(session, at.file, at.line) if at.file in results.sources else at.line - 1
        uri = convert.uri(at.file) if line >= 0 else None
        name = place(replace(at, file=results.names.get(at.file, at.file), line=max(line + 1, 1)))
    return {
        "label": _label(entry.step_ms, results),
        "name": entry.name,
        "about": entry.about,
        "place": name,
        "uri": uri,
        "line": line,
        "stepMs": entry.step_ms,
        "inside": [_inside(session, each) for each in entry.entries],
    }


def _finding(session: Session, results: Results, finding: Finding) -> dict[str, Any]:
    stands = next(notices([finding], session.anchor, session.lines), None)
    line = stands.line if stands is not None else _where(session, finding.file, finding.line)
    verdict = results.verdicts.get(finding.id)
    kept, reason = (verdict.kept, verdict.reason) if verdict is not None else (None, "")
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "uri": convert.uri(finding.file),
        "line": max(line, 0),
        "message": finding.message,
        "cause": {
            "uri": convert.uri(finding.cause.file),
            "line": max(_where(session, finding.cause.file, finding.cause.line), 0),
        },
        "predicted": finding.predicted.speedup if finding.predicted else None,
        "measured": finding.measured.speedup if finding.measured else None,
        "kept": kept,
        "gain": gains.short(finding),
        "detail": gains.long(finding, kept, reason),
        "fixes": [fix.title for fix in finding.fixes if fix.edits],
        "stale": stands is None,
    }


def _where(session: Session, path: str, run_line: int) -> int:
    anchor = session.anchor(path)
    return anchor.where(run_line - 1) if anchor is not None else -1
