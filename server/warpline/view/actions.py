"""Actions for a finding: apply its fixes, or ignore it. Edits as plain data."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from warpline import toml
from warpline.model.report import Edit, Finding, Fix
from warpline.text import ignore
from warpline.text.edits import apply
from warpline.text.lines import content, split
from warpline.view.anchor import Anchor

_TABLE = re.compile(r"^\s*\[\s*tool\s*\.\s*warpline\s*\]\s*(?:#.*)?$")
#: The first line of a statement at module level.
_TOP = re.compile(r"[^\s)\]}#]")
_IMPORT = re.compile(r"\s*(?:import|from)\s")
_ANY_TABLE = re.compile(r"^\s*\[")
_LIST = re.compile(r"^(\s*ignore\s*=\s*\[)(.*)$", re.DOTALL)


def ignore_here(line: str, rule: str) -> tuple[int, int, str] | None:
    """``(from, to, text)`` on the line that silences ``rule`` there; None where no comment can stand."""
    words = content(line)
    found = ignore.on_line(words)
    if found is not None:
        if found[2] is None:
            return None
        names = [*filter(None, (name.strip() for name in found[2].split(","))), rule]
        return found.start(2), found.end(2), ", ".join(names)
    end = len(words.rstrip())
    # After a backslash, or inside a string that goes on, '#' begins no comment.
    if words.rstrip().endswith("\\") or any(words.count(quote) % 2 for quote in ('"""', "'''")):
        return None
    return end, len(words), f"  # warpline: ignore[{rule}]"


def ignore_rule(text: str, rule: str) -> str | None:
    """``pyproject.toml``'s text with ``rule`` in ``ignore`` of ``[tool.warpline]``; None: cannot be done."""
    lines = split(text)
    end = "\r\n" if "\r\n" in text else "\n"
    table = next((n for n, line in enumerate(lines) if _TABLE.match(content(line))), None)
    if table is None:
        gap = "" if not text.strip() else end if text.endswith(("\n", "\r")) else end * 2
        return _checked(f'{text}{gap}[tool.warpline]{end}ignore = ["{rule}"]{end}', rule)
    stop = next((n for n in range(table + 1, len(lines)) if _ANY_TABLE.match(lines[n])), len(lines))
    for n in range(table + 1, stop):
        match = _LIST.match(lines[n])
        if match:
            comma = "" if re.match(r"\s*\]", match[2]) else ", "
            lines[n] = f'{match[1]}"{rule}"{comma}{match[2].lstrip() if not comma else match[2]}'
            return _checked("".join(lines), rule)
    lines[table] = content(lines[table]) + end
    lines.insert(table + 1, f'ignore = ["{rule}"]{end}')
    return _checked("".join(lines), rule)


def moved(fix: Fix, anchor: Anchor, source: str, lines: Sequence[str]) -> Fix | None:
    """A fix of the run's text, moved to where its lines are now.

    None unless the functions and classes that it touches (at module level: the statements) are there in
    one piece and to the letter as they were, no import changed, and the text with the fix still parses.
    What it was computed from is then what is there now.
    """
    then = split(source)
    same = {n for n in range(len(then)) if _same(n, anchor, then, lines)}
    if any(_IMPORT.match(line) and n not in same for n, line in enumerate(then)):
        return None
    edits = []
    for edit in fix.edits:
        first, last = _block(then, edit.start[0] - 1, edit.end[0] - 1)
        shift = anchor.where(first) - first
        if any(n not in same or anchor.where(n) != n + shift for n in range(first, last + 1)):
            return None
        start, end = (edit.start[0] + shift, edit.start[1]), (edit.end[0] + shift, edit.end[1])
        edits.append(replace(edit, start=start, end=end))
    made = replace(fix, edits=tuple(edits))
    try:
        return made if parses(apply("".join(lines), edits)) else None
    except ValueError:
        return None


def _same(line: int, anchor: Anchor, then: Sequence[str], now: Sequence[str]) -> bool:
    place = anchor.where(line)
    return place >= 0 and content(now[place]) == content(then[line])


def _block(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """The lines of the whole top-level statements that lines ``first`` to ``last`` are in (0-based)."""
    last = min(last, len(lines) - 1)
    while first > 0 and not _TOP.match(lines[first]):
        first -= 1
    while last + 1 < len(lines) and not _TOP.match(lines[last + 1]):
        last += 1
    # Blank lines after it are not part of it.
    while last > first and not lines[last].strip():
        last -= 1
    return first, last


def overlap(edits: Sequence[Edit]) -> bool:
    """Whether two edits of one file touch the same text."""
    spans = sorted((edit.file, edit.start, edit.end) for edit in edits)
    return any(a[0] == b[0] and b[1] < a[2] for a, b in pairwise(spans))


def together(fixes: Sequence[Fix]) -> tuple[Edit, ...]:
    """The edits of several fixes as one change: the same edit once, and none that overlaps an earlier one."""
    chosen: list[Edit] = []
    for fix in fixes:
        new = [edit for edit in fix.edits if edit not in chosen]
        if not overlap([*chosen, *new]):
            chosen += new
    return tuple(chosen)


def best(finding: Finding, safe_only: bool) -> int | None:
    """Which of a finding's fixes "fix all" takes: the first that changes text (and is safe, if asked)."""
    for number, fix in enumerate(finding.fixes):
        if fix.applicability == "safe" or (fix.applicability == "unsafe" and not safe_only):
            return number
    return None


def parses(text: str) -> bool:
    """Whether a text is valid Python for the interpreter that Warpline runs in."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _checked(text: str, rule: str) -> str | None:
    try:
        table = toml.parse(text)["tool"]["warpline"]
        return text if rule in table["ignore"] else None
    except (ValueError, KeyError, TypeError):
        return None
