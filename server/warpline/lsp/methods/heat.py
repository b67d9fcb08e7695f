"""warpline/heat: how hot each line of a file is.

An answer may have thousands of lines, and is asked for after every edit. An edit moves lines and leaves
what they say, so that is written as JSON once for each line of a run; an answer puts the numbers of the
lines before it.
"""

from __future__ import annotations

import json
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from warpline.lsp import convert
from warpline.lsp.methods import configuration
from warpline.lsp.protocol import Written
from warpline.lsp.server import Server
from warpline.lsp.state.bars import Bars
from warpline.lsp.state.session import Session


def heat(ls: Server, params: Any) -> Written | None:
    """The share of each line between ``first`` and ``last`` (from 0), as JSON. None where the file is in no
    run. Raises JsonRpcInvalidParams without a uri."""
    uri = params.get("uri") if isinstance(params, dict) else None
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams(message="warpline/heat needs a uri")
    first, last = params.get("first"), params.get("last")
    path = convert.path(uri)
    session = ls.folders.session(path) if path else None
    anchor = session.anchor(path) if session and path else None
    if path is None or session is None or anchor is None:
        return None
    document = ls.documents.at(path)
    lines = _bars(ls, session, path).written(
        anchor,
        first if isinstance(first, int) else 0,
        last if isinstance(last, int) else len(anchor) - 1,
    )
    about = {
        "version": document.version if document else None,
        "run": str(session.results.run),
        "stepMs": session.results.step_ms,
    }
    return Written(f'{json.dumps(about)[:-1]}, "lines": [{",".join(lines)}]}}')


def _bars(ls: Server, session: Session, path: str) -> Bars:
    wording = configuration.settings_for(ls, path).wording
    known = session.bars.get(path)
    if known is None or known.results is not session.results or known.wording != wording:
        known = session.bars[path] = Bars(session.results, path, wording)
    return known
