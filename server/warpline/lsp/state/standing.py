"""The findings that stand in a file now, found once for each run and each state of its text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lsprotocol import types

from warpline.lsp.state.results import Results
from warpline.lsp.state.session import Session
from warpline.view.anchor import Anchor
from warpline.view.diagnostics import Notice, notices

Name = TypeVar("Name", int, str)


@dataclass(frozen=True, slots=True)
class Stand:
    """What holds for one file as long as nothing that it was made from changes."""

    results: Results
    ignore: Collection[str]
    texts: Mapping[str, tuple[Anchor | None, int]]  # of the files that the findings name
    notices: tuple[Notice, ...]
    by_line: Mapping[int, tuple[Notice, ...]]  # 0-based, in the text as it is now
    by_rule: Mapping[str, tuple[Notice, ...]]
    #: What diagnostic.py made of it, with what that depends on besides.
    shown: dict[object, tuple[str, list[types.Diagnostic]]] = field(default_factory=dict)

    def on_lines(self, first: int, last: int) -> list[Notice]:
        """The notices on lines ``first`` to ``last`` (inclusive), in order."""
        if last - first < len(self.by_line):
            return [notice for line in range(first, last + 1) for notice in self.by_line.get(line, ())]
        return [
            notice for line in sorted(self.by_line) if first <= line <= last for notice in self.by_line[line]
        ]


def standing(session: Session, path: str, ignore: Collection[str]) -> Stand:
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
    session.stands[path] = stand = Stand(
        results,
        ignore,
        texts,
        made,
        _grouped(made, [notice.line for notice in made]),
        _grouped(made, [notice.finding.rule for notice in made]),
    )
    return stand


def _state(session: Session, file: str) -> tuple[Anchor | None, int]:
    """An anchor stands for one text and one run, its version for the edits since."""
    anchor = session.anchor(file)
    return anchor, anchor.version if anchor is not None else 0


def _grouped(made: Sequence[Notice], names: Sequence[Name]) -> dict[Name, tuple[Notice, ...]]:
    groups: dict[Name, list[Notice]] = {}
    for name, notice in zip(names, made, strict=True):
        groups.setdefault(name, []).append(notice)
    return {name: tuple(group) for name, group in groups.items()}
