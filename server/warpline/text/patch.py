"""Unified diffs that ``git apply`` and ``patch -p1`` take, written and read.

In a diff only LF ends a line, whatever else Python counts: a form feed stays inside its line.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_END = "\\ No newline at end of file\n"

#: ``(file, first line, one past the last line, text)``: whole lines, counted from 1.
Hunk = tuple[str, int, int, str]


def written(file: str, old: str, new: str, folder: Path | None = None) -> str:
    """The diff of one file; empty for equal texts. Paths below ``folder`` (default: the working folder) are
    relative to it, others absolute."""
    shown = os.path.relpath(file, folder)
    end = "\t" if " " in shown else ""  # where the name ends, for patch
    inside = not shown.startswith(os.pardir)
    names = (f"a/{shown}{end}", f"b/{shown}{end}") if inside else (f"{file}{end}", f"{file}{end}")
    pieces = difflib.unified_diff(_lines(old), _lines(new), *names)
    return "".join(piece if piece.endswith("\n") else f"{piece}\n{_NO_END}" for piece in pieces)


def hunks(patch: str, folder: Path) -> Iterator[Hunk]:
    """The hunks of ``patch``; its relative paths start at ``folder``."""
    file, lines = "", _lines(patch)
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        if line.startswith("--- "):
            name = line[4:].rstrip("\n").split("\t")[0]
            file = name if name.startswith("/") else str(folder / name.removeprefix("a/"))
        elif header := _HUNK.match(line):
            first = int(header[1])
            # The header's counts say where the hunk ends: a removed line may itself begin with "-- ".
            old, new = (int(header[n]) if header[n] else 1 for n in (2, 3))
            kept, at = _kept(lines, at, old, new)
            # Where no old line is named, the number is that of the line above.
            first += old == 0
            yield file, first, first + old, kept


def _kept(lines: list[str], at: int, old: int, new: int) -> tuple[str, int]:
    """The new text of the hunk that begins at ``at``, and where it ends."""
    text: list[str] = []
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith("\\")):
        sign, line = lines[at][:1], lines[at][1:]
        at += 1
        if sign == "\\":  # no line end at the end of the file; below a removed line: of the old text
            if lines[at - 2][:1] != "-":
                text[-1] = text[-1].removesuffix("\n")
            continue
        old -= sign != "+"
        new -= sign != "-"
        if sign != "-":
            text.append(line)
    return "".join(text), at


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)
