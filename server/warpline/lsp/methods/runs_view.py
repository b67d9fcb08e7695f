"""warpline/runs and warpline/openRun: the runs of a folder, and showing one that is not the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from warpline import runs
from warpline.lsp import convert
from warpline.lsp.server import Server
from warpline.lsp.state import results
from warpline.lsp.state.before import REPORT
from warpline.lsp.state.folder import Folder
from warpline.model.problem import Problem
from warpline.view import change, units

#: Runs that are listed, the newest first.
MOST = 200


class _Steps(msgspec.Struct):
    step_ms: float


class _Device(msgspec.Struct):
    kind: str
    name: str


class _Environment(msgspec.Struct):
    device: _Device


class _Head(msgspec.Struct):
    """What a list shows of a report: reading no more of it is a tenth of the time."""

    script: str
    argv: list[str]
    steps: _Steps
    environment: _Environment


async def listed(ls: Server, params: Any) -> list[dict[str, Any]]:
    """The runs of the folder of ``uri``, of all folders where it is absent; the newest first."""
    found: list[dict[str, Any]] = []
    for folder in _folders(ls, params):
        shown = {session.results.run for session in folder.sessions}
        for run in (await asyncio.to_thread(results.complete, folder.runs))[:MOST]:
            row = await asyncio.to_thread(_row, run)
            if row is not None:
                found.append({**row, "shown": run in shown})
    return sorted(found, key=lambda row: -int(row["createdMs"]))[:MOST]


async def opened(ls: Server, params: Any) -> bool:
    """Show a run instead of newer ones of its script. False: it is not there, or shown already."""
    run = params.get("run") if isinstance(params, Mapping) else None
    if not isinstance(run, str):
        raise JsonRpcInvalidParams(message="warpline/openRun needs a run")
    folder = next((folder for folder in ls.folders if folder.runs == Path(run).parent), None)
    return folder is not None and await folder.open(Path(run))


def _folders(ls: Server, params: Any) -> list[Folder]:
    uri = params.get("uri") if isinstance(params, Mapping) else None
    path = convert.path(uri) if isinstance(uri, str) else None
    if path is None:
        return list(ls.folders)
    session = ls.folders.session(path)
    home = session.folder if session is not None else ls.folders.home(path)
    return [folder for folder in ls.folders if folder.path == home]


def _row(run: Path) -> dict[str, Any] | None:
    try:
        manifest = runs.manifest(run)
        head = runs.read(run, REPORT, _Head)
    except Problem:
        return None
    noise = change.noise(manifest.timed_ns)
    step = units.ms(head.steps.step_ms)
    return {
        "run": str(run),
        "script": head.script,
        "module": manifest.request.target if manifest.request.module else None,
        "argv": head.argv,
        "createdMs": manifest.created_ns // 1_000_000,
        "stepMs": head.steps.step_ms,
        "noise": noise,
        "device": head.environment.device.name or head.environment.device.kind,
        "label": step if noise is None else f"{step} ± {units.percent(noise)}",
    }
