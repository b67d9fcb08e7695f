"""From initialized to shutdown: folders come and go, and the client may be gone without a word."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, refresh, registry
from warpline.lsp.methods.initialize import FIRST, add
from warpline.lsp.methods.watch import Watch
from warpline.lsp.server import Server


async def initialized(ls: Server, _: types.InitializedParams) -> None:
    """Load the results of the workspace, ask for the settings, and watch the folders and the client."""
    registry.load()
    refresh.subscribe(ls)
    for folder in ls.folders.workspace:
        ls.folders.add(folder)
    try:
        with ls.folders.changes.together():  # the client asks again when the settings are known too
            looked = asyncio.ensure_future(ls.folders.look())
            await configuration.register_for_changes(ls)
            await configuration.fetch(ls)
            await looked
    finally:
        ls.loading.end(FIRST)
    ls.start(Watch(ls).run())
    ls.start(_outlive(ls))


def folders_changed(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Load the results of new folders and drop those of removed ones."""
    for gone in params.event.removed:
        path = convert.path(gone.uri)
        if path is not None and Path(path) in ls.folders.workspace:
            ls.folders.workspace.remove(Path(path))
            ls.folders.remove(Path(path))
    for added in params.event.added:
        add(ls, added.uri)
    for folder in ls.folders.workspace:
        ls.folders.add(folder)
    ls.start(configuration.with_results(ls))


async def shutdown(ls: Server, _: None) -> None:
    """Running profiles end before the server answers."""
    engines = [*(running.engine for running in ls.folders.running.values()), ls.desk]
    await asyncio.gather(*(engine.end() for engine in engines), return_exceptions=True)


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
