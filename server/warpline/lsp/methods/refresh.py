"""When what is shown changed: have the client ask again, where it can be told to."""

from __future__ import annotations

from warpline.lsp import convert
from warpline.lsp.methods import configuration, diagnostic
from warpline.lsp.server import Server
from warpline.lsp.state.folder import Folder


async def look(ls: Server) -> None:
    """Look for newer runs in all folders, and tell the client of those that came."""
    tell(ls, await load(ls))


async def load(ls: Server) -> list[Folder]:
    """The folders that have other results now; nobody is told yet."""
    return [folder for folder in ls.folders if await folder.refresh()]


def tell(ls: Server, changed: list[Folder]) -> None:
    for folder in changed:
        announce(ls, folder)
    if changed:
        shown(ls)


async def settings_and_results(ls: Server) -> None:
    await configuration.fetch(ls)
    await look(ls)


def announce(ls: Server, folder: Folder) -> None:
    """``warpline/results``: what a folder's results are now."""
    results = folder.newest.results if folder.newest is not None else None
    ls.protocol.notify(
        "warpline/results",
        {
            "run": str(results.run) if results else None,
            "script": results.report.script if results else "",
            "stepMs": results.step_ms if results else 0.0,
            "uris": [convert.uri(file) for file in folder.files()],
        },
    )


def shown(ls: Server) -> None:
    """Hints, lenses and diagnostics may look different now."""
    if ls.can("workspace.inlay_hint.refresh_support"):
        ls.workspace_inlay_hint_refresh(None)
    if ls.can("workspace.code_lens.refresh_support"):
        ls.workspace_code_lens_refresh(None)
    if ls.pushes:
        diagnostic.push_all(ls)
    elif ls.can("workspace.diagnostics.refresh_support"):
        ls.workspace_diagnostic_refresh(None)


def lenses(ls: Server) -> None:
    """Only the lenses: "Profile this file" has become "Profiling…", or the other way round."""
    if ls.can("workspace.code_lens.refresh_support"):
        ls.workspace_code_lens_refresh(None)
