"""warpline/tune: the best set of fixes that can be proven within a budget, applied if wanted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, edits
from warpline.lsp.methods.request import Refused, parameters
from warpline.lsp.methods.under_way import entrances, turn, under_way
from warpline.lsp.server import Server
from warpline.lsp.state.cells import notebook_of
from warpline.model.report import Edit
from warpline.view import gains, units


class TuneParams(msgspec.Struct, rename="camel"):
    """Fields as PROTOCOL.md has them. ``budget`` in seconds; None: the setting."""

    uri: str
    budget: float | None = None
    apply: bool = False
    work_done_token: int | str | None = None


async def tune(ls: Server, argument: Any, bar: bool) -> dict[str, Any]:
    """Search, and apply what was proven if asked to. Raises Refused, Failed.

    ``bar``: show progress also where the client named no token for it.
    """
    params = parameters(argument, TuneParams)
    path = convert.path(params.uri)
    session = ls.folders.newest(path) if path else None
    if session is None:
        raise Refused("there are no results for this file: profile it first")
    if notebook_of(session.loaded) is not None:
        raise Refused("the search works on scripts only: measure a notebook's fixes one by one")
    unsaved = [d.path for d in ls.documents if d.path in session.results.sources and _dirty(d.text, d.path)]
    if unsaved:
        raise Refused(f"save {unsaved[0]} first: the script is run from the files on disk")
    request, folder = session.results.request, session.folder
    target = [*(("-m",) if request.module else ()), request.target, *request.argv]
    await turn(ls, folder, "refuse", params.uri)
    title = "Warpline: searching for the best set of fixes"
    work = under_way(ls, folder, params.uri, params.work_done_token, title, bar, "Searching")
    budget = params.budget or configuration.settings_for(ls, path or params.uri).budget
    async with work as (engine, progress):
        began = time.monotonic()

        def report(stage: str, done: int, total: int | None, message: str) -> None:
            """How long it takes is not known before; that it ends with its budget is."""
            spent = min(time.monotonic() - began, budget)
            words = f"at most {units.seconds(budget - spent)} left; {message}"
            progress.report(stage, round(spent), round(budget), words)

        answer = await engine.ask(
            "tune",
            report,
            runs=str(folder / ".warpline" / "runs"),
            cwd=str(folder),
            target=target,
            budget=budget,
        )
    made = msgspec.convert(answer["edits"], tuple[Edit, ...])
    applied = False
    if params.apply and made:
        edit = edits.workspace_edit(ls, session, made)
        if edit is not None:
            label = types.ApplyWorkspaceEditParams(edit=edit, label="Warpline: the best set of fixes")
            applied = (await ls.workspace_apply_edit_async(label)).applied
    await ls.folders.look()
    return {
        "fixes": list(answer["best"]["fixes"]),
        "speedup": answer["best"]["speedup"],
        "summary": _summary(answer),
        "applied": applied,
    }


on_request, command = entrances(tune)


def _summary(answer: dict[str, Any]) -> str:
    best = answer["best"]
    if not best["fixes"]:
        timed = sum(one["step_ms"] is not None for one in answer["candidates"])
        return f"No set of fixes has a measurable gain ({timed} timed)." if timed else "No fix was timed."
    kept = [c for c in answer["candidates"] if c["kept"] and sorted(c["fixes"]) == sorted(best["fixes"])]
    bounds = ""
    if kept and kept[0]["low"] and kept[0]["high"]:
        bounds = f", {units.interval(kept[0]['low'], kept[0]['high'])}"
    count = len(best["fixes"])
    return f"Best set, {count} {'fix' if count == 1 else 'fixes'}: {gains.factor(best['speedup'])}{bounds}"


def _dirty(text: str, path: str | None) -> bool:
    if path is None:
        return False
    try:
        return Path(path).read_bytes().decode("utf-8-sig", "replace") != text
    except OSError:
        return True
