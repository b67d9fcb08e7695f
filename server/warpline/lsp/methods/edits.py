"""The edits behind an action, made when it is chosen, against the text as it is then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import cell_edits
from warpline.lsp.server import Server
from warpline.lsp.state.cells import notebook_of
from warpline.lsp.state.session import Session
from warpline.lsp.worker.engine import Failed
from warpline.model.problem import Problem
from warpline.model.report import Edit, Finding, Fix
from warpline.text.edits import between
from warpline.text.lines import split
from warpline.view import actions
from warpline.view.anchor import Anchor


async def made(ls: Server, data: dict[str, Any]) -> types.WorkspaceEdit | None:
    """The edit that an action's ``data`` (see code_action.py) stands for; None when it cannot be made."""
    path = data["path"]
    session = ls.folders.session(path)
    if session is None or str(session.results.run) != data.get("run"):
        return None
    findings = {finding.id: finding for finding in session.results.findings.get(path, ())}
    if data.get("what") == "all":
        chosen = [findings[name] for name in data.get("findings", ()) if name in findings]
        return await _all(ls, session, chosen, safe=bool(data.get("safe")))
    finding = findings.get(data.get("finding", ""))
    if finding is None:
        return None
    if data.get("what") == "fix":
        fix = await fix_of(ls, session, finding, int(data.get("fix", 0)))
        return workspace_edit(ls, session, fix.edits) if fix is not None else None
    if data.get("what") == "ignore-here":
        return _ignore_here(ls, session, finding)
    if data.get("what") == "ignore-rule":
        return _ignore_rule(ls, path, finding.rule)
    return None


async def fix_of(ls: Server, session: Session, finding: Finding, number: int) -> Fix | None:
    """One fix of a finding. Where nothing that it depends on changed it is the run's own, moved along;
    else the rule makes it again."""
    if number >= len(finding.fixes):
        return None
    try:
        script = cell_edits.script_now(ls, session)
    except Problem as problem:
        cell_edits.refuse(ls, finding.rule, str(problem))
        return None
    if script is None:
        return await _fix_now(ls, session, finding, number, {})
    # As it was found: on the lines of the script that the cells ran as.
    title = finding.fixes[number].title
    finding = next(one for one in session.loaded.report.findings if one.id == finding.id)
    number = [fix.title for fix in finding.fixes].index(title)
    made = await _fix_now(ls, session, finding, number, {script.path: script.exported.text})
    placed = cell_edits.in_cells(made, script) if made is not None else None
    if placed is None:
        cell_edits.refuse(ls, finding.rule)
    return placed


async def _fix_now(
    ls: Server, session: Session, finding: Finding, number: int, instead: dict[str, str]
) -> Fix | None:
    """``instead``: texts of files that stand for something else in the editor."""
    run, fix = session.results.run, finding.fixes[number]
    if not {edit.file for edit in fix.edits} - {finding.file}:
        source = session.results.sources[finding.file]
        lines, anchor = session.lines(finding.file), session.anchor(finding.file)
        if finding.file in instead:
            lines = split(instead[finding.file])
            anchor = Anchor(source, lines)
        same = "".join(lines) == source
        found = fix if same else actions.moved(fix, anchor, source, lines) if anchor else None
        if found is not None:
            return found
    now = texts(ls) | instead
    try:
        answer = await ls.desk.ask("fixes", run=str(run), finding=msgspec.to_builtins(finding), texts=now)
    except Failed as problem:
        ls.log(f"{finding.rule}: {problem}")
        return None
    fresh = msgspec.convert(answer, tuple[Fix, ...])
    return next((other for other in fresh if other.title == fix.title), None)


def texts(ls: Server) -> dict[str, str]:
    """What the editor holds, saved or not."""
    return {document.path: document.text for document in ls.documents if document.path}


def workspace_edit(ls: Server, session: Session | None, made: Iterable[Edit]) -> types.WorkspaceEdit | None:
    """Edits (1-based lines, code points) for the client; None when there are none."""
    files: dict[str, list[types.TextEdit]] = {}
    for edit in made:
        lines = _lines(ls, session, edit.file)
        span = ls.documents.codec.span(
            (edit.start[0] - 1, edit.start[1]), (edit.end[0] - 1, edit.end[1]), list(lines)
        )
        files.setdefault(edit.file, []).append(types.TextEdit(range=span, new_text=edit.text))
    return _by_file(ls, files) if files else None


async def _all(
    ls: Server, session: Session, findings: list[Finding], safe: bool
) -> types.WorkspaceEdit | None:
    """Several findings' fixes as one change that can be undone at once."""
    results = session.results
    if not findings:
        return None
    chosen = []
    for finding in findings:
        number = actions.best(finding, safe_only=safe)
        if number is not None:
            chosen.append(replace(finding, fixes=(finding.fixes[number],)))
    if notebook_of(session.loaded) is not None:
        return workspace_edit(ls, session, actions.together(await _each(ls, session, chosen)))
    try:
        answer = await ls.desk.ask(
            "together", run=str(results.run), findings=msgspec.to_builtins(chosen), texts=texts(ls)
        )
    except Failed as problem:
        ls.log(f"fix all: {problem}")
        return workspace_edit(ls, session, actions.together(await _each(ls, session, chosen)))
    for name, reason in answer["skipped"].items():
        ls.log(f"fix all: {name} was skipped: {reason}")
    return workspace_edit(ls, session, msgspec.convert(answer["edits"], tuple[Edit, ...]))


async def _each(ls: Server, session: Session, findings: Iterable[Finding]) -> list[Fix]:
    fixes = [await fix_of(ls, session, finding, 0) for finding in findings]
    return [fix for fix in fixes if fix is not None]


def _ignore_here(ls: Server, session: Session, finding: Finding) -> types.WorkspaceEdit | None:
    anchor = session.anchor(finding.file)
    line = anchor.where(finding.line - 1) if anchor is not None else -1
    if line < 0:
        return None
    change = actions.ignore_here(session.lines(finding.file)[line], finding.rule)
    if change is None:
        return None
    start, end, text = change
    return workspace_edit(ls, session, [Edit(finding.file, (line + 1, start), (line + 1, end), text)])


def _ignore_rule(ls: Server, near: str, rule: str) -> types.WorkspaceEdit | None:
    """An edit that turns a rule off in the project's pyproject.toml, which is made if there is none."""
    home = ls.folders.home(near)
    place = next((p for p in (home, *home.parents) if (p / "pyproject.toml").is_file()), home)
    path = str(place / "pyproject.toml")
    lines = _lines(ls, None, path)
    text = "".join(lines)
    changed = actions.ignore_rule(text, rule)
    if changed is None:
        return None
    new = not Path(path).is_file() and ls.documents.at(path) is None
    creates = ls.can("workspace.workspace_edit.resource_operations") or ()
    if new and types.ResourceOperationKind.Create not in creates:
        return None
    change = types.TextEdit(
        range=ls.documents.codec.span((0, 0), (len(lines), 0), list(lines)), new_text=changed
    )
    if not new:
        changes = between(text, changed)
        if len(changes) == 1:
            (start, end, words), codec = changes[0], ls.documents.codec
            span = codec.span((start[0] - 1, start[1]), (end[0] - 1, end[1]), list(lines))
            change = types.TextEdit(range=span, new_text=words)
        return _by_file(ls, {path: [change]})
    document = types.OptionalVersionedTextDocumentIdentifier(uri=convert.uri(path))
    return types.WorkspaceEdit(
        document_changes=[
            types.CreateFile(uri=convert.uri(path)),
            types.TextDocumentEdit(text_document=document, edits=[change]),
        ]
    )


def _by_file(ls: Server, files: dict[str, list[types.TextEdit]]) -> types.WorkspaceEdit:
    """The edits by file. With document versions where the client takes them, so that no edit meets another
    text."""
    if not ls.can("workspace.workspace_edit.document_changes"):
        return types.WorkspaceEdit(changes={_uri(ls, file): found for file, found in files.items()})
    changes: list[Any] = []
    for file, found in files.items():
        document = ls.documents.at(file)
        identifier = types.OptionalVersionedTextDocumentIdentifier(
            uri=_uri(ls, file), version=document.version if document else None
        )
        changes.append(types.TextDocumentEdit(text_document=identifier, edits=found))
    return types.WorkspaceEdit(document_changes=changes)


def _uri(ls: Server, path: str) -> str:
    document = ls.documents.at(path)
    return document.uri if document is not None else convert.uri(path)


def _lines(ls: Server, session: Session | None, path: str) -> Sequence[str]:
    document = ls.documents.at(path)
    if document is not None:
        return document.lines
    lines = session.lines(path) if session is not None else []
    if lines:
        return lines
    try:
        return split(Path(path).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return split("")
