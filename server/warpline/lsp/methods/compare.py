"""warpline/compare: two runs of one script, line by line; their difference in the hints if wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpline.lsp import convert
from warpline.lsp.methods.comparison import rows
from warpline.lsp.methods.overview import asked_for
from warpline.lsp.server import Server
from warpline.lsp.state.results import Results, load
from warpline.lsp.state.session import Session
from warpline.model.problem import Problem
from warpline.view import change, units


async def compare(ls: Server, params: Any) -> dict[str, Any] | None:
    """The run that is shown (or ``with``) against ``run``, or against the one before that can be compared."""
    session = asked_for(ls, params)
    if session is None:
        return None
    named = params if isinstance(params, Mapping) else {}
    shown = session
    if isinstance(other := named.get("with"), str) and Path(other) != session.results.run:
        session = await _loaded(ls, session.folder, Path(other))
    after = session.results
    asked = named.get("run")
    run = Path(asked) if isinstance(asked, str) else after.before.run if after.before else None
    if run is None:
        return None
    before = (await _loaded(ls, session.folder, run)).results
    launchers = before.request.launcher, after.request.launcher
    reason = change.comparable(before.report, after.report, launchers)
    noise = None if reason else change.together(before.noise, after.noise)
    found = rows(session, before, after)
    if "hints" in named:
        both = change.together(before.noise, after.noise)
        shown.against = _by_line(found, both) if named["hints"] and shown is session else {}
        ls.folders.changes.shown()
    words = change.of_step(before.step_ms, after.step_ms, noise)
    title = f"{units.ms(before.step_ms)} → {units.ms(after.step_ms)} a step"
    return {
        "before": _summary(before),
        "after": _summary(after),
        "speedup": before.step_ms / after.step_ms if after.step_ms > 0 else 0.0,
        "comparable": not reason,
        "noise": noise,
        "title": f"{title}: not comparable, {reason}" if reason else f"{title}: {words}",
        "lines": [{**row, "label": _words(row)} for row in found],
    }


async def _loaded(ls: Server, folder: Path, run: Path) -> Session:
    """A run as it is shown. If its notebook is open, its lines are those of the cells, so that both runs name
    the same."""
    try:
        results = await asyncio.to_thread(load, run, [])
    except Problem as problem:
        raise JsonRpcException(str(problem), types.LSPErrorCodes.RequestFailed.value) from None
    session = Session(folder, results, ls.documents)
    session.tell_by_cells()
    return session


def _by_line(lines: list[dict[str, Any]], noise: float | None) -> dict[tuple[str, int], float]:
    """(path, 1-based line of the newer run) to its time before, for the lines of that run that differ by
    more than the noise of both. Also for runs that cannot be compared as a whole: the user chose them."""
    return {
        (convert.path(row["uri"]) or "", row["runLine"]): row["beforeMs"] or 0.0
        for row in lines
        if row["runLine"] is not None
        and row["afterMs"] is not None
        and change.is_change(row["beforeMs"] or 0.0, row["afterMs"], noise)
    }


def _words(row: dict[str, Any]) -> str:
    """``+1.30 ms  12.4 ms → 13.7 ms``."""
    was = units.ms(row["beforeMs"]) if row["beforeMs"] is not None else "new"
    now = units.ms(row["afterMs"]) if row["afterMs"] is not None else "gone"
    return f"{change.difference(row['deltaMs'])}  {was} → {now}"


def _summary(results: Results) -> dict[str, Any]:
    return {
        "run": str(results.run),
        "stepMs": results.step_ms,
        "createdMs": results.created_ns // 1_000_000,
    }
