"""warpline/measure and the command warpline.measure: what a finding's fix gains on the running script."""

from __future__ import annotations

from typing import Any

import msgspec
from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import cell_edits, edits
from warpline.lsp.methods.request import Refused, parameters
from warpline.lsp.methods.under_way import entrances, turn, under_way
from warpline.lsp.server import Server
from warpline.lsp.state.cells import notebook_of
from warpline.model.problem import Problem
from warpline.model.report import Measured
from warpline.view import gains


class MeasureParams(msgspec.Struct, rename="camel"):
    """Fields as PROTOCOL.md has them."""

    uri: str
    finding_id: str
    apply: bool = False
    work_done_token: int | str | None = None


async def measure(ls: Server, argument: Any, bar: bool) -> dict[str, Any]:
    """Try the fix, keep what was measured with the run, and apply it if asked to. Raises Refused, Failed.

    ``bar``: show progress also where the client named no token for it.
    """
    params = parameters(argument, MeasureParams)
    path = convert.path(params.uri)
    session = ls.folders.session(path) if path else None
    if path is None or session is None:
        raise Refused("there are no results for this file: profile it first")
    # A notebook's fixes are tried on the script that its cells are.
    results = session.results if notebook_of(session.loaded) is None else session.loaded
    finding = next((f for f in results.report.findings if f.id == params.finding_id), None)
    if finding is None:
        raise Refused("this finding is from an earlier run: profile the file again")
    try:
        texts = edits.texts(ls) | cell_edits.text_now(ls, session)
    except Problem as problem:
        raise Refused(str(problem)) from None
    folder = session.folder
    await turn(ls, folder, "refuse", params.uri)
    title = f"Warpline: measuring {finding.rule}"
    work = under_way(ls, folder, params.uri, params.work_done_token, title, bar, "Measuring")
    async with work as (engine, progress):
        answer = await engine.ask(
            "measure",
            progress.report,
            run=str(results.run),
            finding=msgspec.to_builtins(finding),
            texts=texts,
        )
    measured = answer["measured"]
    applied = bool(params.apply and answer["kept"]) and await _apply(ls, path, finding.id)
    await ls.folders.look()
    return {
        "findingId": finding.id,
        "speedup": measured["speedup"],
        "low": measured["low"],
        "high": measured["high"],
        "lossDrift": measured["loss_drift"],
        "memoryRatio": measured["memory_ratio"],
        "kept": answer["kept"],
        "reason": answer["reason"],
        "summary": f"{finding.rule}: {_words(measured, answer)}",
        "applied": applied,
    }


on_request, command = entrances(measure)


async def apply(ls: Server, argument: Any) -> bool:
    """warpline/apply: a finding's first fix, put into the text as it is now."""
    params = parameters(argument, MeasureParams)
    path = convert.path(params.uri)
    return path is not None and await _apply(ls, path, params.finding_id)


def _words(measured: dict[str, Any], answer: dict[str, Any]) -> str:
    words = gains.measured(msgspec.convert(measured, Measured))
    reason = answer["reason"]
    said = reason in ("faster", "slower") or reason in words or words.startswith("no measurable gain")
    return words if said else f"{words}: {reason}"


async def _apply(ls: Server, path: str, finding: str) -> bool:
    session = ls.folders.session(path)
    run = str(session.results.run) if session is not None else ""
    edit = await edits.made(ls, {"what": "fix", "path": path, "run": run, "finding": finding, "fix": 0})
    if edit is None:
        return False
    answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit=edit, label="Warpline"))
    return answer.applied
