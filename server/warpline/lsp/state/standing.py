"""The findings that are in a file now, found once for each run and each state of its text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from warpline.lsp.state.current_findings import CurrentFindings
from warpline.lsp.state.session import Session
from warpline.view.anchor import Anchor
from warpline.view.diagnostics import Notice, notices

Name = TypeVar("Name", int, str)


def standing(session: Session, path: str, ignore: Collection[str]) -> CurrentFindings:
    """``ignore``: the rules that the settings silence for the file."""
    results = session.results
    known = session.stands.get(path)
    if (
        known is not None
        and known.results is results
        and known.ignore == ignore
        and all(_state(session, file) == state for file, state in known.texts.items())
    ):
        return known
    found = [finding for finding in results.findings.get(path, ()) if finding.rule not in ignore]
    files = {path, *(finding.cause.file for finding in found)}
    texts = {file: _state(session, file) for file in files}
    lines = {file: session.lines(file) for file in files}
    made = tuple(notices(found, lambda file: texts[file][0], lines.__getitem__))
    session.stands[path] = found_now = CurrentFindings(
        results,
        ignore,
        texts,
        made,
        _grouped(made, [notice.line for notice in made]),
        _grouped(made, [notice.finding.rule for notice in made]),
    )
    return found_now


def _state(session: Session, file: str) -> tuple[Anchor | None, int]:
    """An anchor stands for one text and one run, its version for the edits since."""
    anchor = session.anchor(file)
    return anchor, anchor.version if anchor is not None else 0


def _grouped(made: Sequence[Notice], names: Sequence[Name]) -> dict[Name, tuple[Notice, ...]]:
    groups: dict[Name, list[Notice]] = {}
    for name, notice in zip(names, made, strict=True):
        groups.setdefault(name, []).append(notice)
    return {name: tuple(group) for name, group in groups.items()}
