"""Edits applied to text, and the edits between two texts."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Protocol

from warpline.text.lines import split, starts

#: Line from 1, column from 0 in code points.
Position = tuple[int, int]


class Replacement(Protocol):
    """What an edit of one file has (:class:`warpline.model.report.Edit`)."""

    @property
    def start(self) -> Position:
        """Where the replaced text begins."""

    @property
    def end(self) -> Position:
        """Where it ends; the same position for an insertion."""

    @property
    def text(self) -> str:
        """What stands there afterwards."""


def apply(text: str, edits: Iterable[Replacement]) -> str:
    """``text`` with ``edits`` of one file made. Edits refer to the text before any of them.

    Raises ValueError for edits that overlap or lie outside the text.
    """
    offsets = starts(text)
    placed = []
    for order, edit in enumerate(edits):
        start, end = _offset(offsets, len(text), edit.start), _offset(offsets, len(text), edit.end)
        if end < start:
            raise ValueError(f"an edit ends before it starts: {edit.start} to {edit.end}")
        placed.append((start, end, order, edit.text))
    pieces, position = [], 0
    for start, end, _, new in sorted(placed):
        if start < position:
            raise ValueError("two edits overlap")
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


def carried(position: Position, edits: Iterable[Replacement]) -> Position | None:
    """Where ``position`` is after ``edits`` of one file, which refer to the text before any of them; None if
    what stood there was replaced. An insertion at the position itself goes before it."""
    line, column = position
    # How far lines move; and how far what follows on line ``last`` does, on which an edit ends.
    lines = columns = last = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start > position:
            break
        if edit.end > position:
            return None
        begins = edit.start[1] + (columns if edit.start[0] == last else 0)
        added = split(edit.text)
        ends = len(added[-1]) + (begins if len(added) == 1 else 0)
        lines += len(added) - 1 - (edit.end[0] - edit.start[0])
        last, columns = edit.end[0], ends - edit.end[1]
    return line + lines, column + (columns if line == last else 0)


def between(old: str, new: str) -> list[tuple[Position, Position, str]]:
    """``(start, end, text)`` of whole lines that make ``new`` of ``old``."""
    before, after = split(old), split(new)
    found = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            end = (b + 1, 0) if b < len(before) else (len(before), len(before[-1]))
            found.append(((a + 1, 0), end, "".join(after[c:d])))
    return found


def _offset(offsets: list[int], length: int, position: Position) -> int:
    line, column = position
    if not 1 <= line <= len(offsets):
        raise ValueError(f"line {line} is outside the file")
    limit = offsets[line] if line < len(offsets) else length
    offset = offsets[line - 1] + column
    if column < 0 or offset > limit:
        raise ValueError(f"column {column} is outside line {line}")
    return offset
