"""Plain edits applied to text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpline.model.report import Edit


def apply(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with ``edits`` of one file made. Edits speak of the text before any of them.

    Raises ValueError for edits that overlap or lie outside the text.
    """
    starts = line_starts(text)
    placed = []
    for order, edit in enumerate(edits):
        start, end = _offset(starts, len(text), edit.start), _offset(starts, len(text), edit.end)
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


def line_starts(text: str) -> list[int]:
    """Offset of each line's first character; line ends as Python has them (not ``splitlines``)."""
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]


def _offset(starts: list[int], length: int, position: tuple[int, int]) -> int:
    line, column = position
    if not 1 <= line <= len(starts):
        raise ValueError(f"line {line} is outside the file")
    limit = starts[line] if line < len(starts) else length
    offset = starts[line - 1] + column
    if column < 0 or offset > limit:
        raise ValueError(f"column {column} is outside line {line}")
    return offset
