"""Findings as notices on lines: where each stands in the text now, and whether it still does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from warpline.model.report import Edit, Finding
from warpline.view.anchor import Anchor
from warpline.view.anchor_text import key
from warpline.view.hover import gain

#: The comment that silences rules on its line; all of them when none is named.
IGNORE = re.compile(r"#\s*warpline:\s*ignore(?:\[([\w\s,-]*)\])?")

#: What these rules speak of is to be taken out altogether; editors fade it.
UNNECESSARY = frozenset({"synchronize-in-step", "cache-emptied-in-step", "anomaly-detection-on"})
#: And these are superseded; editors strike them through.
DEPRECATED = frozenset({"data-parallel"})


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
    for finding in findings:
        own = anchor(finding.file)
        line = standing(finding, own)
        if line < 0 or ignored(finding.rule, lines(finding.file)[line]):
            continue
        related = []
        cause = finding.cause
        if (cause.file, cause.line) != (finding.file, finding.line):
            there = anchor(cause.file)
            at = there.where(cause.line - 1) if there is not None else -1
            if at >= 0:
                related.append(Related(cause.file, at, "the time is seen here"))
        yield Notice(finding, line, finding.message + gain(finding), tuple(related), _tag(finding.rule))


def standing(finding: Finding, anchor: Anchor | None) -> int:
    """The line a finding stands on now, or -1: its line is gone or changed, or its remedy is in the text."""
    line = anchor.where(finding.line - 1) if anchor is not None else -1
    if anchor is None or line < 0 or anchor.stale(line):
        return -1
    for fix in finding.fixes:
        if fix.edits and all(_done(edit, finding.file, anchor) for edit in fix.edits):
            return -1
    return line


def ignored(rule: str, line: str) -> bool:
    """Whether a comment on the line silences the rule: ``# warpline: ignore[rule, other]`` or ``ignore``."""
    match = IGNORE.search(line)
    return match is not None and (match[1] is None or rule in {name.strip() for name in match[1].split(",")})


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
    if rule in UNNECESSARY:
        return "unnecessary"
    return "deprecated" if rule in DEPRECATED else None
