"""Findings as diagnostics: pulled where the client can pull, pushed where it cannot, never both."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration, pages
from warpline.lsp.server import Server
from warpline.lsp.state.standing import standing
from warpline.view.diagnostics import Notice

SOURCE = "warpline"
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
_TAGS = {"unnecessary": types.DiagnosticTag.Unnecessary, "deprecated": types.DiagnosticTag.Deprecated}
#: Pushed this long after the last keystroke.
_PAUSE_S = 0.15
_NOTHING: tuple[str, list[types.Diagnostic]] = ("", [])


async def pull(
    ls: Server, params: types.DocumentDiagnosticParams
) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
    """The diagnostics of a file; "unchanged" where the client has the newest."""
    await ls.loading.over()
    path = convert.path(params.text_document.uri)
    result, items = _diagnostics(ls, path) if path else _NOTHING
    if result and result == params.previous_result_id:
        return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
    return types.RelatedFullDocumentDiagnosticReport(items=items, result_id=result or None)


async def pull_all(ls: Server, params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
    """The findings of all files, open or not. A file without any more is sent once, empty."""
    await ls.loading.over()
    before = {previous.uri: previous.value for previous in params.previous_result_ids}
    items: list[types.WorkspaceDocumentDiagnosticReport] = []
    named = {convert.path(uri): uri for uri in before}
    for path in sorted({*with_findings(ls), *filter(None, named)}):
        document = ls.documents.at(path)
        uri = document.uri if document else named.get(path) or convert.uri(path)
        version = document.version if document else None
        result, found = _diagnostics(ls, path)
        if result and result == before.get(uri):
            items.append(types.WorkspaceUnchangedDocumentDiagnosticReport(uri, result, version=version))
        elif found or uri in before:
            items.append(
                types.WorkspaceFullDocumentDiagnosticReport(
                    uri, found, version=version, result_id=result or None
                )
            )
    return types.WorkspaceDiagnosticReport(items=items)


def push(ls: Server, path: str) -> None:
    """Send a file's diagnostics, for clients that do not ask."""
    document = ls.documents.at(path)
    ls.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(
            uri=document.uri if document else convert.uri(path),
            version=document.version if document else None,
            diagnostics=_diagnostics(ls, path)[1],
        )
    )
    ls.pushed_files.add(path)


def push_all(ls: Server) -> None:
    """Every file with findings, and those that had some before."""
    files = set(with_findings(ls))
    opened = {document.path for document in ls.documents if document.path}
    for path in sorted(files | opened | ls.pushed_files):
        push(ls, path)


def with_findings(ls: Server) -> list[str]:
    """The files with findings, of whichever script and folder."""
    return sorted({f for folder in ls.folders for one in folder.sessions for f in one.results.findings})


def push_soon(ls: Server, path: str) -> None:
    """After a pause in typing."""
    if (timer := ls.push_timers.pop(path, None)) is not None:
        timer.cancel()
    ls.push_timers[path] = asyncio.get_running_loop().call_later(_PAUSE_S, push, ls, path)


def _diagnostics(ls: Server, path: str) -> tuple[str, list[types.Diagnostic]]:
    """The diagnostics of a file, and a name that stands for exactly these."""
    session, settings = ls.folders.session(path), configuration.settings_for(ls, path)
    if session is None or not settings.diagnostics:
        return _NOTHING
    stand = standing(session, path, settings.ignore)
    links = {rule: pages.uri(ls, rule, path) for rule in stand.by_rule}
    key = tuple(links.items())
    if key not in stand.shown:
        stand.shown.clear()
        capability = "text_document.publish_diagnostics" if ls.pushes else "text_document.diagnostic"
        related = ls.can(f"{capability}.related_information") is not False
        made = [
            diagnostic(ls, notice, session.lines, links[notice.finding.rule], related)
            for notice in stand.notices
        ]
        stand.shown[key] = secrets.token_hex(8), made
    return stand.shown[key]


def diagnostic(
    ls: Server, notice: Notice, lines: Callable[[str], object], page: str | None, related: bool = True
) -> types.Diagnostic:
    """``page``: where the page of the finding's rule is."""
    finding = notice.finding
    return types.Diagnostic(
        range=_line(ls, finding.file, notice.line, lines),
        message=notice.message,
        severity=_SEVERITY[finding.severity],
        source=SOURCE,
        code=finding.rule,
        code_description=types.CodeDescription(href=page) if page else None,
        tags=[_TAGS[notice.tag]] if notice.tag else None,
        related_information=[
            types.DiagnosticRelatedInformation(
                location=types.Location(
                    uri=convert.uri(other.path), range=_line(ls, other.path, other.line, lines)
                ),
                message=other.message,
            )
            for other in notice.related
        ]
        if related
        else None,
        data={"finding": finding.id},
    )


def _line(ls: Server, path: str, line: int, lines: Callable[[str], object]) -> types.Range:
    text = lines(path)
    assert isinstance(text, list)
    return ls.documents.codec.whole_line(line, text[line])
