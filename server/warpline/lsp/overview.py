"""warpline/heat, warpline/overview, warpline/compare: results for what LSP has no place for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from warpline.lsp import configuration, convert
from warpline.lsp.results import Results, load
from warpline.lsp.server import Server
from warpline.lsp.session import Session
from warpline.model.problem import Problem
from warpline.model.report import Finding, Line
from warpline.view.anchor_lines import Standing, standing
from warpline.view.anchor_text import content
from warpline.view.diagnostics import notices
from warpline.view.hints import label, share

_TOP = 50


def heat(ls: Server, params: Any) -> dict[str, Any] | None:
    uri = params.get("uri") if isinstance(params, dict) else None
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams(message="warpline/heat needs a uri")
    path = convert.path(uri)
    session = ls.folders.session(path) if path else None
    anchor = session.anchor(path) if session and path else None
    if path is None or session is None or session.results is None or anchor is None:
        return None
    results = session.results
    settings = configuration.of(ls, path)
    document = ls.documents.at(path)
    return {
        "version": document.version if document else None,
        "run": str(results.run),
        "stepMs": results.step_ms,
        "lines": [
            {
                "line": line.line,
                "share": share(line.step_ms, results.step_ms),
                "stepMs": line.step_ms,
                "stale": line.stale,
                "label": label(line, results.step_ms, settings.wording),
            }
            for line in standing(results.costs.get(path, {}), anchor)
        ],
    }


def overview(ls: Server, params: Any) -> dict[str, Any] | None:
    session = _session(ls, params)
    results = session.results if session is not None else None
    if session is None or results is None:
        return None
    device = results.report.environment.device
    return {
        "run": str(results.run),
        "script": results.report.script,
        "argv": list(results.report.argv),
        "stepMs": results.step_ms,
        "previousStepMs": results.before.step_ms if results.before else None,
        "createdMs": results.created_ns // 1_000_000,
        "device": f"{device.kind}: {device.name}" if device.name else device.kind,
        "deviceBusyPercent": results.report.steps.device_busy_percent,
        "lines": _lines(session, results),
        "findings": [_finding(ls, session, results, f) for f in results.report.findings],
        "notes": list(results.report.notes),
    }


async def compare(ls: Server, params: Any) -> dict[str, Any] | None:
    session = _session(ls, params)
    results = session.results if session is not None else None
    if session is None or results is None:
        return None
    asked = params.get("run") if isinstance(params, dict) else None
    run = Path(asked) if isinstance(asked, str) else results.before.run if results.before else None
    if run is None:
        return None
    try:
        before = await asyncio.to_thread(load, run, [])
    except Problem as problem:
        raise JsonRpcException(str(problem), types.LSPErrorCodes.RequestFailed.value) from None
    from warpline.lsp.comparison import rows

    return {
        "before": _summary(before),
        "after": _summary(results),
        "speedup": before.step_ms / results.step_ms if results.step_ms > 0 else 0.0,
        "lines": rows(session, before, results),
    }


def _summary(results: Results) -> dict[str, Any]:
    return {
        "run": str(results.run),
        "stepMs": results.step_ms,
        "createdMs": results.created_ns // 1_000_000,
    }


def _session(ls: Server, params: Any) -> Session | None:
    uri = params.get("uri") if isinstance(params, Mapping) else None
    path = convert.path(uri) if isinstance(uri, str) else None
    return None if isinstance(uri, str) and path is None else ls.folders.newest(path)


def _lines(session: Session, results: Results) -> list[dict[str, Any]]:
    costly: dict[tuple[str, int], list[Line]] = {}
    for cost in results.report.lines:
        costly.setdefault((cost.file, cost.line), []).append(cost)
    ranked = sorted(costly.items(), key=lambda item: -sum(cost.step_ms for cost in item[1]))
    found = []
    for (file, run_line), costs in ranked:
        anchor = session.anchor(file)
        line = anchor.where(run_line - 1) if anchor is not None else -1
        if anchor is None or line < 0:
            continue
        stands = Standing(line, tuple(costs), anchor.stale(line))
        found.append(
            {
                "uri": convert.uri(file),
                "line": line,
                "function": costs[0].function,
                "text": content(session.lines(file)[line]).strip(),
                "share": share(stands.step_ms, results.step_ms),
                "stepMs": stands.step_ms,
                "label": label(stands, results.step_ms),
                "stale": stands.stale,
            }
        )
        if len(found) == _TOP:
            break
    return found


def _finding(ls: Server, session: Session, results: Results, finding: Finding) -> dict[str, Any]:
    stands = next(notices([finding], session.anchor, session.lines), None)
    line = stands.line if stands is not None else _where(session, finding.file, finding.line)
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
        "fixes": [fix.title for fix in finding.fixes],
        "stale": stands is None,
    }


def _where(session: Session, path: str, run_line: int) -> int:
    anchor = session.anchor(path)
    return anchor.where(run_line - 1) if anchor is not None else -1
