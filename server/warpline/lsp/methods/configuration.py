"""workspace/configuration: asked for each folder at the start, and again whenever it changes."""

from __future__ import annotations

import asyncio

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpline.lsp import convert
from warpline.lsp.server import Server
from warpline.lsp.state.settings import Settings, merged

SECTION = "warpline"
#: A client that declares the request and never answers it must not hold anything up.
_PATIENCE_S = 5.0


async def register_for_changes(ls: Server) -> None:
    """Subscribe to changes, if the client supports it."""
    if not ls.can("workspace.did_change_configuration.dynamic_registration"):
        return
    options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
    registration = types.Registration(
        id="warpline-configuration", method=types.WORKSPACE_DID_CHANGE_CONFIGURATION, register_options=options
    )
    ls.client_register_capability(types.RegistrationParams(registrations=[registration]))


async def fetch(ls: Server, pushed: object = None) -> None:
    """Settle the settings of every session. ``pushed``: what the client sent along, if it did."""
    folders = list(ls.folders)
    answers: list[object] = [pushed] * len(folders)
    if folders and ls.can("workspace.configuration"):
        items = [
            types.ConfigurationItem(scope_uri=convert.uri(str(folder.path)), section=SECTION)
            for folder in folders
        ]
        request = ls.workspace_configuration_async(types.ConfigurationParams(items=items))
        try:
            answers = list(await asyncio.wait_for(request, _PATIENCE_S))
        except (asyncio.TimeoutError, JsonRpcException):
            ls.log("the client did not answer workspace/configuration; the project's settings are used")
    for folder, answer in zip(folders, answers, strict=False):
        told = folder.settings.problem
        folder.project = folder.project_stamp()  # before it is read: what is written meanwhile is seen
        folder.settings = merged(folder.path, answer)
        if folder.settings.problem and folder.settings.problem != told:
            ls.show(folder.settings.problem, types.MessageType.Warning)


async def with_results(ls: Server) -> None:
    """Settings and results, after folders came or went."""
    await fetch(ls)
    await ls.folders.look()


async def changed(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """The client's settings changed: ask for them again, and show the results by them."""
    sent = params.settings
    section = sent.get(SECTION) if isinstance(sent, dict) else None
    await fetch(ls, section)
    ls.folders.changes.shown()


def settings_for(ls: Server, path: str) -> Settings:
    """The settings that hold for a file."""
    home = ls.folders.home(path)
    for folder in ls.folders:
        if folder.path == home:
            return folder.settings
    return Settings()
