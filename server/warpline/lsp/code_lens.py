"""textDocument/codeLens: "Profile this file", and what the file and its functions cost."""

from __future__ import annotations

from lsprotocol import types

from warpline.lsp import configuration, convert
from warpline.lsp.server import Server
from warpline.lsp.session import Session
from warpline.view import lenses


async def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens]:
    await ls.loading.over()
    uri = params.text_document.uri
    path = convert.path(uri)
    if path is None or not configuration.of(ls, path).lenses:
        return []
    if ls.folders.home(path) in ls.folders.running:
        found = [_lens(0, "Profiling… (click to cancel)", "warpline.cancel", [uri])]
    else:
        found = [_lens(0, "Profile this file", "warpline.profile", [uri])]
    session = ls.folders.session(path)
    return found if session is None else found + _totals(session, path)


def _totals(session: Session, path: str) -> list[types.CodeLens]:
    results, anchor = session.results, session.anchor(path)
    if results is None or anchor is None:
        return []
    before = results.before
    whole = lenses.of_file(results.file_ms(path), results.step_ms, before.step_ms if before else None)
    functions = None
    if before is not None:
        functions = {name: total for (file, name), total in before.functions.items() if file == path}
    found = [_lens(0, whole, "warpline.overview", [{"uri": convert.uri(path)}])]
    for lens in lenses.of_functions(results.functions(path), anchor, results.step_ms, functions):
        found.append(_lens(lens.line, lens.text, "warpline.overview", [{"uri": convert.uri(path)}]))
    return found


def _lens(line: int, title: str, command: str, arguments: list[object]) -> types.CodeLens:
    place = convert.line_start(line)
    return types.CodeLens(
        range=types.Range(start=place, end=place),
        command=types.Command(title=title, command=command, arguments=arguments),
    )
