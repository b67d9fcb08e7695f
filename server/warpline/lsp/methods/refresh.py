"""Asks the client to refresh when results change, if the client supports it."""

from __future__ import annotations

from pathlib import Path

from warpline.lsp import convert
from warpline.lsp.methods import diagnostic
from warpline.lsp.server import Server


def subscribe(ls: Server) -> None:
    """Tell the client of every change of the state."""
    ls.folders.changes.subscribe(Refresh(ls))


class Refresh:
    """The client's subscription (:class:`warpline.lsp.state.changes.Subscriber`)."""

    def __init__(self, ls: Server) -> None:
        self._ls = ls

    def results_changed(self, folder: Path) -> None:
        """``warpline/results``: what a folder's results are now."""
        changed = self._ls.folders.get(folder)
        if changed is None:
            return  # it was removed meanwhile
        results = changed.newest.results if changed.newest is not None else None
        self._ls.protocol.notify(
            "warpline/results",
            {
                "run": str(results.run) if results else None,
                "script": results.report.script if results else "",
                "stepMs": results.step_ms if results else 0.0,
                "uris": [convert.uri(file) for file in changed.files()],
            },
        )

    def shown_changed(self) -> None:
        """Hints, lenses and diagnostics may look different now."""
        ls = self._ls
        if ls.can("workspace.inlay_hint.refresh_support"):
            ls.workspace_inlay_hint_refresh(None)
        if ls.can("workspace.code_lens.refresh_support"):
            ls.workspace_code_lens_refresh(None)
        if ls.pushes:
            diagnostic.push_all(ls)
        elif ls.can("workspace.diagnostics.refresh_support"):
            ls.workspace_diagnostic_refresh(None)

    def running_changed(self) -> None:
        """Only the lenses: "Profile this file" has become "Profiling…", or the other way round."""
        if self._ls.can("workspace.code_lens.refresh_support"):
            self._ls.workspace_code_lens_refresh(None)
