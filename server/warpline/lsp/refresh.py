"""When what is shown changed: have the client ask again, where it can be told to."""

from __future__ import annotations

from warpline.lsp import configuration, convert, diagnostic
from warpline.lsp.server import Server
from warpline.lsp.session import Session


async def look(ls: Server) -> None:
    """Look for newer runs in all folders, and tell the client of those that came."""
    tell(ls, await load(ls))


async def load(ls: Server) -> list[Session]:
    """The sessions that have other results now; nobody is told yet."""
    return [session for session in ls.folders if await session.refresh()]


def tell(ls: Server, changed: list[Session]) -> None:
    for session in changed:
        announce(ls, session)
    if changed:
        shown(ls)


async def settings_and_results(ls: Server) -> None:
    await configuration.fetch(ls)
    await look(ls)


def announce(ls: Server, session: Session) -> None:
    """``warpline/results``: what a folder's results are now."""
    results = session.results
    ls.protocol.notify(
        "warpline/results",
        {
            "run": str(results.run) if results else None,
            "script": results.report.script if results else "",
            "stepMs": results.step_ms if results else 0.0,
            "uris": [convert.uri(file) for file in results.files()] if results else [],
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
