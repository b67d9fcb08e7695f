"""Documents open, change and close. Their text is kept by protocol.py before these are called."""

from __future__ import annotations

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, diagnostic
from warpline.lsp.server import Server


async def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """A file was opened: find the runs of its folder and those around it."""
    path = convert.path(params.text_document.uri)
    if path is None:
        return
    known = {folder.path for folder in ls.folders}
    for place in ls.folders.around(path):
        # A script profiled in a terminal leaves its runs where the terminal was.
        if place == ls.folders.home(path) or (place / ".warpline" / "runs").is_dir():
            ls.folders.add(place)
    if {folder.path for folder in ls.folders} != known:
        ls.loading.begin(path)
        try:
            await configuration.fetch(ls)
            await ls.folders.look()
        finally:
            ls.loading.end(path)
    for folder in ls.folders:
        folder.adopt(path)
    if ls.pushes:
        diagnostic.push(ls, path)


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """The text changed; its diagnostics move with their lines."""
    path = convert.path(params.text_document.uri)
    if path is not None and ls.pushes:
        diagnostic.push_soon(ls, path)


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """The file was closed: from here on the text on disk counts."""
    path = convert.path(params.text_document.uri)
    if path is not None and ls.pushes:
        diagnostic.push(ls, path)


async def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """The project's settings were saved: read them again."""
    if params.text_document.uri.endswith("/pyproject.toml"):
        await configuration.fetch(ls)
        ls.folders.changes.shown()
