"""textDocument/codeLens: "Profile this file", and what the file and its functions cost."""

from __future__ import annotations

import json
from typing import Any

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, launching, request
from warpline.lsp.protocol import Written
from warpline.lsp.server import Server
from warpline.lsp.state import torch_use
from warpline.lsp.state.session import Session

#: Longer arguments, or options of a launcher, are cut in a lens.
_LONGEST = 48
#: A CodeLens as it is sent. Written from lsprotocol's own class, the answer for a long file takes three times
#: as long.
_Lens = dict[str, Any]


async def code_lens(ls: Server, params: types.CodeLensParams) -> Written:
    """One lens to profile the file, or to cancel that, and one for each function that costs time."""
    await ls.loading.over()
    uri = params.text_document.uri
    path = convert.path(uri)
    if path is None or not configuration.settings_for(ls, path).lenses:
        return Written("[]")
    session = ls.folders.session(path)
    found: list[_Lens] = []
    running = ls.folders.running.get(home) if (home := ls.folders.home(path)) else None
    if running is not None:
        found = [_lens(0, f"{running.doing}… (click to cancel)", "warpline.cancel", [uri])]
    elif path.startswith(convert.CELL):
        if uri in [cells[0] for cells in ls.documents.notebooks.values() if cells]:
            found = [_lens(0, "Profile this notebook", "warpline.profile", [uri])]
    elif (session is not None and path in session.results.sources) or (
        session is None and _offered(ls, path)
    ):  # not in a library's file, which no one profiles
        found = _profile(ls, path, uri)
    if session is not None:
        found += _totals(session, path)
    return Written(json.dumps(found))


def _offered(ls: Server, path: str) -> bool:
    document = ls.documents.at(path)
    return torch_use.in_project(ls.folders.home(path), ls.torch_projects) or (
        document is not None and torch_use.in_file(document.lines)
    )


def _profile(ls: Server, path: str, uri: str) -> list[_Lens]:
    """What a click runs: as the module, with the launcher and the arguments of the last time."""
    last = request.last_of(ls.folders, path)
    own = configuration.settings_for(ls, path).launcher
    what = f"Profile module {last.target}" if last is not None and last.module else "Profile this file"
    launcher = launching.spoken(own or (last.launcher if last is not None else ()))
    title = f"{what} with {_cut(launcher)}" if launcher else what
    words = " ".join(last.argv) if last is not None else ""
    found = [_lens(0, f"{title} ({_cut(words)})" if words else title, "warpline.profile", [uri])]
    if launcher and not own:
        name = launcher.partition(" ")[0]
        plain = {"uri": uri, "launcher": []}
        found.append(_lens(0, f"Without {name}", "warpline.profile", [plain]))
    return found


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _totals(session: Session, path: str) -> list[_Lens]:
    anchor = session.anchor(path)
    if anchor is None:
        return []
    over_file, over_functions = session.results.lenses(path)
    where = [{"uri": convert.uri(path)}]
    found = [_lens(0, over_file, "warpline.overview", where)]
    for lens in over_functions:
        line = anchor.where(lens.line)
        if line >= 0:
            found.append(_lens(line, lens.text, "warpline.overview", where))
    return found


def _lens(line: int, title: str, command: str, arguments: list[Any]) -> _Lens:
    return {
        "range": convert.empty_range(line),
        "command": {"title": title, "command": command, "arguments": arguments},
    }
