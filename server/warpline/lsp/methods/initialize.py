"""initialize: what the client is and can; answered before anything is loaded that results need."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import registry
from warpline.lsp.server import Server

#: Name of the first look at the workspace's folders.
FIRST = "workspace"

#: Where workspace/diagnostic is offered, Neovim 0.12 answers a refresh with that alone and takes none of it
#: for open buffers, which then keep their old diagnostics.
_NO_WORKSPACE_PULL = ("Neovim",)


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Note the client's encoding, folders and abilities. Nothing is loaded yet."""
    encoding = ls.workspace.position_encoding or "utf-16"
    ls.documents.codec = convert.Codec(str(getattr(encoding, "value", encoding)))
    folders = [folder.uri for folder in params.workspace_folders or ()]
    if not folders and params.root_uri:
        folders = [params.root_uri]
    for uri in folders:
        add(ls, uri)
    ls.loading.begin(FIRST)  # ended by ``initialized``
    # Offering to be pulled from and pushing as well would show everything twice.
    ls.pushes = ls.can("text_document.diagnostic") is None
    if not ls.pushes:
        client = params.client_info.name if params.client_info else ""
        registry.offer_pull(ls, of_all_files=client not in _NO_WORKSPACE_PULL)


def add(ls: Server, uri: str) -> None:
    """Note a workspace folder. Those that are not files are left out."""
    path = convert.path(uri)
    if path is not None and Path(path) not in ls.folders.workspace:
        ls.folders.workspace.append(Path(path))
