"""warpline/page and warpline/place: the page of a run beside the code, and where its lines stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcException

from warpline.lsp import convert
from warpline.lsp.methods.overview import asked_for
from warpline.lsp.methods.request import Refused, parameters
from warpline.lsp.server import Server
from warpline.lsp.state.session import Session
from warpline.lsp.worker.engine import Failed


class PageParams(msgspec.Struct):
    run: str | None = None
    uri: str | None = None


class PlaceParams(msgspec.Struct):
    run: str
    file: str
    line: int


async def page(ls: Server, params: Any) -> dict[str, Any] | None:
    """Written into the run's folder each time it is asked for: each run has its own, which is removed with
    it."""
    try:
        asked = parameters(params or {}, PageParams)
        session = _of_run(ls, asked.run) if asked.run else asked_for(ls, msgspec.to_builtins(asked))
        if session is None:
            return None
        run = session.results.run
        file = run / "report.html"
        await ls.desk.ask("report_page", run=str(run), cwd=str(session.folder), file=str(file))
    except Refused as refusal:
        raise refusal.answer() from None
    except Failed as error:
        raise JsonRpcException(code=-32803, message=str(error)) from None
    return {"run": str(run), "script": session.results.report.script, "file": str(file)}


def place(ls: Server, params: Any) -> dict[str, Any] | None:
    """Where a line of the run stands in the text as it is now (from 0). None where it is gone."""
    try:
        asked = parameters(params or {}, PlaceParams)
    except Refused as refusal:
        raise refusal.answer() from None
    session = _of_run(ls, asked.run)
    if session is None:
        return None
    there = (asked.file, asked.line)
    file, run_line = session.results.cells.get(there, there)  # the page names a notebook's script
    anchor = session.anchor(file)
    line = anchor.where(run_line - 1) if anchor is not None else -1
    return {"uri": convert.uri(file), "line": line} if line >= 0 else None


def _of_run(ls: Server, run: str) -> Session | None:
    """Only runs that are shown: no other file is read, and no other place named."""
    sessions = (session for folder in ls.folders for session in folder.sessions)
    return next((session for session in sessions if session.results.run == Path(run)), None)
