"""Rule pages as files on this machine, so that an editor can open what a diagnostic links to.

They are written by the worker, beside the runs; nothing is ever linked to from what a run folder says.
"""

from __future__ import annotations

import re
from pathlib import Path

from warpline import runs
from warpline.lsp import convert
from warpline.lsp.server import Server
from warpline.lsp.worker.engine import Failed
from warpline.model.problem import Problem

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def uri(ls: Server, rule: str, near: str) -> str | None:
    """Where the page of a rule is, for findings in the file ``near``; None as long as it is not there."""
    if not _NAME.fullmatch(rule):
        return None
    path = _path(ls, near, rule)
    if path.is_file():
        return convert.uri(str(path))
    if rule not in ls.pages_asked_for:
        ls.pages_asked_for.add(rule)
        ls.start(_prepare(ls, rule, near))
    return None


async def written(ls: Server, rule: str, near: str) -> Path | None:
    """The page of a rule as a file, written again; None when there is no such rule."""
    if not _NAME.fullmatch(rule):
        return None
    try:
        page = await ls.desk.ask("page", rule=rule)
    except Failed:
        return None
    path = _path(ls, near, rule)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return runs.write(path, page["markdown"].encode())
    except (OSError, Problem):
        return None


async def _prepare(ls: Server, rule: str, near: str) -> None:
    if await written(ls, rule, near) is not None:
        ls.folders.changes.shown()


def _path(ls: Server, near: str, rule: str) -> Path:
    return ls.folders.home(near) / ".warpline" / "rules" / f"{rule}.md"
