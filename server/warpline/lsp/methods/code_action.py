"""textDocument/codeAction and codeAction/resolve: apply, explain, ignore, fix all, measure, look inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types

from warpline.devices import can
from warpline.lsp import convert
from warpline.lsp.methods import configuration, diagnostic, edits, pages
from warpline.lsp.methods.registry import FIX_ALL
from warpline.lsp.server import Server
from warpline.lsp.state.session import Session
from warpline.lsp.state.standing import standing
from warpline.rules import tags
from warpline.view import actions, gains
from warpline.view.diagnostics import Notice


async def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The actions at a range. Clients that cannot resolve an action get it with its edit."""
    path = convert.path(params.text_document.uri)
    session = ls.folders.session(path) if path else None
    if path is None or session is None:
        return []
    stand = standing(session, path, configuration.settings_for(ls, path).ignore)
    only = params.context.only
    offered: list[types.CodeAction] = []
    if _wanted(types.CodeActionKind.QuickFix, only):
        for notice in stand.on_lines(params.range.start.line, params.range.end.line):
            offered += _of_notice(ls, session, path, notice, stand.by_rule[notice.finding.rule])
    # Only where it is asked for: a light bulb on every line of the file is no help.
    if only is not None and _wanted(FIX_ALL, only):
        safe = [n.finding.id for n in stand.notices if actions.best(n.finding, safe_only=True) is not None]
        if safe:
            data = _data(session, path, "all", findings=safe, safe=True)
            offered.append(
                types.CodeAction(title="Apply all safe Warpline fixes in this file", kind=FIX_ALL, data=data)
            )
    if "edit" not in (ls.can("text_document.code_action.resolve_support.properties") or ()):
        offered = [await resolve(ls, action) for action in offered]
        offered = [action for action in offered if action.edit is not None or action.command is not None]
    return offered


async def resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
    """Make the edit against the text as it is now; an action that is out of date gets no edit."""
    data = action.data if isinstance(action.data, dict) else {}
    if action.edit is None and isinstance(data.get("path"), str):
        action.edit = await edits.made(ls, data)
    return action


def _wanted(kind: str, only: Any) -> bool:
    return only is None or any(kind == asked or kind.startswith(f"{asked}.") for asked in map(_word, only))


def _word(kind: Any) -> str:
    return str(getattr(kind, "value", kind))


def _of_notice(
    ls: Server, session: Session, path: str, notice: Notice, alike: Sequence[Notice]
) -> list[types.CodeAction]:
    """``alike``: the notices of the same rule in the file."""
    finding = notice.finding
    shown = [diagnostic.diagnostic(ls, notice, session.lines, pages.uri(ls, finding.rule, path))]
    found: list[types.CodeAction] = []

    def add(title: str, what: str, preferred: bool | None = None, **more: Any) -> None:
        data = _data(session, path, what, finding=finding.id, **more)
        found.append(
            types.CodeAction(
                title=title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=shown,
                is_preferred=preferred,
                data=data,
            )
        )

    editing = [
        (n, fix) for n, fix in enumerate(finding.fixes) if fix.applicability != "display" and fix.edits
    ]
    for n, (number, fix) in enumerate(editing):
        unsafe = "" if fix.applicability == "safe" else " (may change results)"
        gain = gains.short(finding) if n == 0 else ""  # of the first one only: that is what was tried
        title = f"{fix.title}: {gain}" if gain else fix.title
        add(title + unsafe, "fix", True if n == 0 and not unsafe else None, fix=number)
    if editing and len(alike) > 1:
        all_of_it = [n.finding.id for n in alike if actions.best(n.finding, safe_only=False) is not None]
        add(f"Apply every fix of {finding.rule} in this file", "all", findings=all_of_it, safe=False)
    if editing and ls.offers()["measure"]:
        measure: dict[str, Any] = {"uri": convert.uri(path), "findingId": finding.id, "apply": False}
        found.append(_command("Measure this fix", "warpline.measure", measure, shown))
    if "kernel" in tags(finding.rule) and can(session.results.report.environment.device.kind, "nsight"):
        at = {"uri": convert.uri(path), "line": notice.line}
        found.append(_command("Look inside with Nsight Compute", "warpline.kernel", at, shown))
    found.append(_command(f"Explain {finding.rule}", "warpline.explain", finding.rule, shown))
    if actions.ignore_here(session.lines(path)[notice.line], finding.rule) is not None:
        add(f"Ignore {finding.rule} on this line", "ignore-here")
    add(f"Ignore {finding.rule} in this project", "ignore-rule")
    return found


def _data(session: Session, path: str, what: str, **more: Any) -> dict[str, Any]:
    return {"what": what, "path": path, "run": str(session.results.run), **more}


def _command(title: str, command: str, argument: Any, shown: list[types.Diagnostic]) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=shown,
        command=types.Command(title=title, command=command, arguments=[argument]),
    )
