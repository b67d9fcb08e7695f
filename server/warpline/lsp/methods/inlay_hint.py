"""textDocument/inlayHint and inlayHint/resolve."""

from __future__ import annotations

from lsprotocol import types

from warpline.lsp import convert
from warpline.lsp.methods import configuration
from warpline.lsp.methods.hover import card_at, markup
from warpline.lsp.server import Server
from warpline.lsp.state.session import Session
from warpline.text.lines import content
from warpline.view import change
from warpline.view.anchor_lines import standing
from warpline.view.hints import Hint, hints


async def inlay_hint(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The time of each line at its end, from the share that the settings ask for."""
    await ls.loading.over()
    path = convert.path(params.text_document.uri)
    session = ls.folders.session(path) if path else None
    if path is None or session is None:
        return []
    settings = configuration.settings_for(ls, path)
    anchor = session.anchor(path)
    costs = session.results.costs_in(path)
    if anchor is None or not costs or not settings.hints:
        return []
    lazy = "tooltip" in (ls.can("text_document.inlay_hint.resolve_support.properties") or ())
    lines = session.lines(path)
    shown = hints(
        standing(costs, anchor, params.range.start.line, params.range.end.line),
        session.results.step_ms,
        settings.threshold,
        settings.wording,
    )
    return [
        types.InlayHint(
            position=ls.documents.codec.position(
                hint.line, len(content(lines[hint.line]).rstrip()), lines[hint.line]
            ),
            label=hint.text + _difference(session, path, hint),
            padding_left=True,
            tooltip=None if lazy else _tooltip(ls, path, hint.line),
            data={"path": path, "line": hint.line, "run": str(session.results.run)},
        )
        for hint in shown
    ]


def _difference(session: Session, path: str, hint: Hint) -> str:
    """`` · -1.30 ms`` where the run is compared with another one."""
    anchor = session.anchor(path)
    if not session.against or anchor is None:
        return ""
    was = session.against.get((path, anchor.origin(hint.line) + 1))
    return "" if was is None else f" · {change.difference(hint.step_ms - was)}"


def resolve(ls: Server, hint: types.InlayHint) -> types.InlayHint:
    """Add the tooltip of a hint, unless its line has changed."""
    data = hint.data if isinstance(hint.data, dict) else {}
    path, line = data.get("path"), data.get("line")
    if isinstance(path, str) and isinstance(line, int):
        session = ls.folders.session(path)
        # Of another run by now, or after edits: the client asks again and gets new hints.
        if session is not None and str(session.results.run) == data.get("run"):
            hint.tooltip = _tooltip(ls, path, line)
    return hint


def _tooltip(ls: Server, path: str, line: int) -> types.MarkupContent | None:
    words = card_at(ls, path, line, markdown=True)
    return markup(words, markdown=True) if words else None
