"""Commands beside warpline.profile: warpline.explain, warpline.overview."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from warpline.lsp import convert
from warpline.lsp.methods import overview, pages
from warpline.lsp.server import Server


async def explain(ls: Server, *arguments: Any) -> dict[str, Any] | None:
    """The page of a rule, opened where the client can open a document."""
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise JsonRpcInvalidParams(message="warpline.explain needs the name of a rule")
    rule = arguments[0]
    session = ls.folders.newest(None)
    near = session.folder if session is not None else next(iter(ls.folders.workspace), Path.cwd())
    page = await pages.written(ls, rule, str(near / "_"))
    if page is None:
        name = rule if re.fullmatch(r"[\w-]{1,60}", rule) else "of that name"
        ls.show(f"there is no rule {name}", types.MessageType.Warning)
        return None
    uri = convert.uri(str(page))
    if ls.can("window.show_document.support"):
        await ls.window_show_document_async(types.ShowDocumentParams(uri=uri, take_focus=True))
    else:
        ls.show(f"{rule}: {page}", types.MessageType.Info)
    return {"rule": rule, "uri": uri}


def show(ls: Server, *arguments: Any) -> dict[str, Any] | None:
    """warpline.overview: the results that ``warpline/overview`` answers, for clients that only have
    commands."""
    return overview.overview(ls, arguments[0] if arguments else None)
