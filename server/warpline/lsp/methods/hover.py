"""textDocument/hover: the card of the line, in the first format that the client names."""

from __future__ import annotations

from dataclasses import replace

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.server import Server
from warpline.lsp.state.results import Results
from warpline.view import gains
from warpline.view.anchor_lines import at
from warpline.view.hover import card, plain
from warpline.view.inside import Caller


def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """What a line costs and why. None for a line without costs."""
    path = convert.path(params.text_document.uri)
    if path is None:
        return None
    formats = ls.can("text_document.hover.content_format") or [types.MarkupKind.PlainText]
    markdown = formats[0] == types.MarkupKind.Markdown
    line = params.position.line
    words = card_at(ls, path, line, markdown)
    if words is None:
        return None
    session = ls.folders.session(path)
    lines = session.lines(path) if session is not None else []
    return types.Hover(
        contents=markup(words, markdown), range=ls.documents.codec.whole_line(line, lines[line])
    )


def card_at(ls: Server, path: str, line: int, markdown: bool) -> str | None:
    """The card of a line of a file as it is now; None where nothing is known of it."""
    session = ls.folders.session(path)
    if session is None:
        return None
    results = session.results
    anchor = session.anchor(path)
    found = at(results.costs_in(path), anchor, line) if anchor is not None else None
    if anchor is None:
        return None
    run_line = anchor.origin(line) + 1
    inside = "" if anchor.stale(line) else results.inside.get((path, run_line), "")
    if found is None:
        return plain(inside, markdown) if inside else None
    findings = [] if found.stale else _measured(results, path, run_line)
    loader_ms = results.loader_ms.get((path, run_line), 0.0)
    callers = () if path in results.costs else _callers(results, path, run_line)
    return card(found, results.report, findings, loader_ms, markdown, inside, callers)


def _callers(results: Results, path: str, run_line: int) -> list[Caller]:
    """The user's lines that a library's line is part of; those of a notebook by cell."""
    found = []
    for caller in results.libraries.callers(path, run_line):
        file, line = results.cells.get((caller.file, caller.line), (caller.file, caller.line))
        found.append(replace(caller, file=results.names.get(file, file), line=line))
    return found


def _measured(results: Results, path: str, run_line: int) -> list[str]:
    """What was measured of the fixes for a line."""
    words = []
    for finding in results.findings.get(path, ()):
        if finding.line == run_line and finding.measured is not None:
            verdict = results.verdicts.get(finding.id)
            kept, reason = (verdict.kept, verdict.reason) if verdict is not None else (None, "")
            words.append(f"{finding.rule}: {gains.long(finding, kept, reason)}")
    return words


def markup(words: str, markdown: bool) -> types.MarkupContent:
    """Text in the format that the client asked for."""
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.MarkupContent(kind=kind, value=words)
