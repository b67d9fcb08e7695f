"""Findings as diagnostics: the current line of each, and whether it is still valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from warpline.model.report import Edit, Finding
from warpline.rules import tags
from warpline.text.ignore import Suppressions
from warpline.text.lines import content, key
from warpline.view.anchor import Anchor
from warpline.view.hover import gain


@dataclass(frozen=True, slots=True)
class Related:
    path: str
    line: int  # 0-based, in that file's text as it is now
    message: str


@dataclass(frozen=True, slots=True)
class Notice:
    finding: Finding
    line: int  # 0-based, in the text as it is now
    message: str
    related: tuple[Related, ...]
    tag: str | None  # "unnecessary" | "deprecated"


def notices(
    findings: Iterable[Finding],
    anchor: Callable[[str], Anchor | None],
    lines: Callable[[str], Sequence[str]],
) -> Iterator[Notice]:
    """The findings that still stand; ``anchor`` and ``lines`` (the text now) of the files they name."""
    ignored: dict[str, Suppressions] = {}
    for finding in findings:
        own = anchor(finding.file)
        line = standing(finding, own)
        if line < 0:
            continue
        if finding.file not in ignored:
            ignored[finding.file] = Suppressions("\n".join(map(content, lines(finding.file))))
        if ignored[finding.file].holds(finding.rule, line + 1):
            continue
        related = []
        others = [(one, "the same here") for one in finding.also]
        if finding.cause.place != finding.place:
            others.insert(0, (finding.cause, "the time is seen here"))
        for other, said in others:
            there = anchor(other.file)
            at = there.where(other.line - 1) if there is not None else -1
            if at >= 0:
                related.append(Related(other.file, at, said))
        yield Notice(finding, line, finding.message + gain(finding), tuple(related), _tag(finding.rule))


def standing(finding: Finding, anchor: Anchor | None) -> int:
    """The line a finding is on now, or -1: its line is gone or changed, or its remedy is in the text."""
    line = anchor.where(finding.line - 1) if anchor is not None else -1
    if anchor is None or line < 0 or anchor.stale(line):
        return -1
    for fix in finding.fixes:
        if fix.edits and all(_done(edit, finding.file, anchor) for edit in fix.edits):
            return -1
    return line


def _done(edit: Edit, file: str, anchor: Anchor) -> bool:
    """Whether the text has what the edit would have put there (or lost what it would have changed)."""
    if edit.file != file:
        return False
    first, last = edit.start[0] - 1, edit.end[0] - 1
    if edit.start != edit.end:
        return any(anchor.where(n) < 0 or anchor.stale(anchor.where(n)) for n in range(first, last + 1))
    words = {key(line) for line in edit.text.split("\n")} - {""}
    above = anchor.where(first - 1) if first else -1
    below = anchor.where(first)
    if below >= 0 and anchor.stale(below):
        return True
    between = {anchor.key(n) for n in range(above + 1, below)} if below >= 0 else set()
    return bool(words) and words <= between


def _tag(rule: str) -> str | None:
    return next((tag for tag in tags(rule) if tag in ("unnecessary", "deprecated")), None)
