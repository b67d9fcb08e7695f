"""textDocument/codeLens: "Profile this file", and what the file and its functions cost."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from warpline.lsp import configuration, convert, request, torch_use
from warpline.lsp.server import Server
from warpline.lsp.session import Session
from warpline.view import lenses

#: Longer arguments are cut in a lens.
_ARGUMENTS = 48


async def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens]:
    await ls.loading.over()
    uri = params.text_document.uri
    path = convert.path(uri)
    if path is None or not configuration.of(ls, path).lenses:
        return []
    session = ls.folders.session(path)
    found = []
    running = ls.folders.running.get(home) if (home := ls.folders.home(path)) else None
    if running is not None:
        found = [_lens(0, f"{running.doing}… (click to cancel)", "warpline.cancel", [uri])]
    elif session is not None or _offered(ls, path):
        found = [_lens(0, _title(ls, path), "warpline.profile", [uri])]
    return found if session is None else found + _totals(session, path)


def _offered(ls: Server, path: str) -> bool:
    document = ls.documents.at(path)
    return torch_use.in_project(ls.folders.home(path)) or (
        document is not None and torch_use.in_file(document.lines)
    )


def _title(ls: Server, path: str) -> str:
    """What a click runs: with the arguments, and as the module, of the last time."""
    last = request.last_of(ls.folders, path)
    if last is None:
        return "Profile this file"
    words = " ".join(last.argv)
    words = words if len(words) <= _ARGUMENTS else words[: _ARGUMENTS - 1] + "…"
    what = f"Profile module {last.target}" if last.module else "Profile this file"
    return f"{what} ({words})" if words else what


def _totals(session: Session, path: str) -> list[types.CodeLens]:
    results, anchor = session.results, session.anchor(path)
    if anchor is None:
        return []
    before = results.before
    noise = before.noise if before is not None else None
    whole = lenses.of_file(results.file_ms(path), results.step_ms, before.step_ms if before else None, noise)
    functions = None
    if before is not None:
        functions = {name: total for (file, name), total in before.functions.items() if file == path}
    found = [_lens(0, whole, "warpline.overview", _of(path))]
    for lens in lenses.of_functions(results.functions(path), anchor, results.step_ms, functions, noise):
        found.append(_lens(lens.line, lens.text, "warpline.overview", _of(path)))
    return found


def _of(path: str) -> list[Any]:
    return [{"uri": convert.uri(path)}]


def _lens(line: int, title: str, command: str, arguments: list[Any]) -> types.CodeLens:
    place = convert.line_start(line)
    return types.CodeLens(
        range=types.Range(start=place, end=place),
        command=types.Command(title=title, command=command, arguments=arguments),
    )
