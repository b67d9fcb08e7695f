"""Findings as diagnostics: pulled where the client can pull, pushed where it cannot, never both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsprotocol import types

from warpline.lsp import configuration, convert, pages
from warpline.lsp.server import Server
from warpline.lsp.session import Session
from warpline.view.diagnostics import Notice, notices

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


def pull(ls: Server, params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
    path = convert.path(params.text_document.uri)
    items = diagnostics(ls, path) if path else []
    return types.RelatedFullDocumentDiagnosticReport(items=items)


def push(ls: Server, path: str) -> None:
    document = ls.documents.at(path)
    ls.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(
            uri=document.uri if document else convert.uri(path),
            version=document.version if document else None,
            diagnostics=diagnostics(ls, path),
        )
    )
    _pushed.add(path)


def push_all(ls: Server) -> None:
    """Every file with findings, and those that had some before."""
    files = {file for session in ls.folders if session.results for file in session.results.findings}
    opened = {document.path for document in ls.documents if document.path}
    for path in sorted(files | opened | _pushed):
        push(ls, path)


def push_soon(ls: Server, path: str) -> None:
    """After a pause in typing."""
    if (timer := _waiting.pop(path, None)) is not None:
        timer.cancel()
    _waiting[path] = asyncio.get_running_loop().call_later(_PAUSE_S, push, ls, path)


#: One server in a process: files that were pushed to, and those about to be.
_pushed: set[str] = set()
_waiting: dict[str, asyncio.TimerHandle] = {}


def standing(ls: Server, path: str) -> tuple[Session, list[Notice]] | None:
    """The findings that stand in a file now, whatever the client may show."""
    session = ls.folders.session(path)
    if session is None or session.results is None:
        return None
    settings = configuration.of(ls, path)
    findings = [f for f in session.results.findings.get(path, ()) if f.rule not in settings.ignore]
    return session, list(notices(findings, session.anchor, session.lines))


def diagnostics(ls: Server, path: str) -> list[types.Diagnostic]:
    found = standing(ls, path)
    if found is None or not configuration.of(ls, path).diagnostics:
        return []
    session, stand = found
    capability = "text_document.publish_diagnostics" if ls.pushes else "text_document.diagnostic"
    related = ls.can(f"{capability}.related_information") is not False
    return [diagnostic(ls, notice, session.lines, related) for notice in stand]


def diagnostic(
    ls: Server, notice: Notice, lines: Callable[[str], object], related: bool = True
) -> types.Diagnostic:
    finding = notice.finding
    page = pages.uri(ls, finding)
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
