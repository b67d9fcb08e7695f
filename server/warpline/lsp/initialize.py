"""initialize, initialized, workspace folders, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from lsprotocol import types

from warpline.lsp import configuration, convert, diagnostic, refresh
from warpline.lsp.server import Server
from warpline.lsp.watch import Watch


def register(server: Server) -> None:
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(folders_changed)
    server.feature(types.SHUTDOWN)(shutdown)


def initialize(ls: Server, params: types.InitializeParams) -> None:
    encoding = ls.workspace.position_encoding or "utf-16"
    ls.documents.codec = convert.Codec(str(getattr(encoding, "value", encoding)))
    folders = [folder.uri for folder in params.workspace_folders or ()]
    if not folders and params.root_uri:
        folders = [params.root_uri]
    for uri in folders:
        _add(ls, uri)
    # Offering to be pulled from and pushing as well would show everything twice.
    ls.pushes = ls.can("text_document.diagnostic") is None
    if not ls.pushes:
        diagnostic.offer(ls)


async def initialized(ls: Server, _: types.InitializedParams) -> None:
    await configuration.register_for_changes(ls)
    await configuration.fetch(ls)
    await refresh.look(ls)
    ls.start(Watch(ls).run())
    ls.start(_outlive(ls))


def folders_changed(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    for gone in params.event.removed:
        path = convert.path(gone.uri)
        if path is not None and Path(path) in ls.folders.workspace:
            ls.folders.workspace.remove(Path(path))
            ls.folders.remove(Path(path))
    for added in params.event.added:
        _add(ls, added.uri)
    ls.start(refresh.settings_and_results(ls))


async def shutdown(ls: Server, _: None) -> None:
    """Running profiles end before the client is told that we have."""
    engines = [*(running.engine for running in ls.folders.running.values()), ls.desk]
    await asyncio.gather(*(engine.end() for engine in engines), return_exceptions=True)


def _add(ls: Server, uri: str) -> None:
    path = convert.path(uri)
    if path is not None and Path(path) not in ls.folders.workspace:
        ls.folders.workspace.append(Path(path))
        ls.folders.add(Path(path))


async def _outlive(ls: Server) -> None:
    """End when the client's process does, even where its end of the pipe is still held open by another."""
    process = ls.process_id
    if process is None or not _alive(process):
        return  # It named none, or one of another machine or container.
    while _alive(process):
        await asyncio.sleep(2.0)
    ls.folders.kill()
    ls.desk.kill()
    with contextlib.suppress(OSError):
        os._exit(1)


def _alive(process: int) -> bool:
    if os.name == "nt":
        return False  # os.kill would end it; the closed pipe has to do there.
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
