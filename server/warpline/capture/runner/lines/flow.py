"""Control flow of a code object: which line events are redundant."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

_NO_FALL_THROUGH = ("RETURN_", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")

#: Neither this nor ``positions`` is known to the checker: it reads us as Python 3.10.
_parse_exception_table: Any = getattr(dis, "_parse_exception_table", None)


def came_from(code: CodeType) -> dict[int, set[int | None]]:
    """``{offset: lines}`` for each instruction: the lines of all that may come before it.

    A line is None if it is unknown: at the start, in an exception's handler, after an
    instruction without a line. Python 3.12 and newer.
    """
    before: dict[int, set[int | None]] = {}
    line, falls = None, False
    for at in _instructions(code):
        before.setdefault(at.offset, set())
        if falls or at.offset == 0:
            before[at.offset].add(line)
        line = at.positions.lineno if at.positions is not None else None
        falls = not at.opname.startswith(_NO_FALL_THROUGH)
        if at.opcode in dis.hasjrel or at.opcode in dis.hasjabs:
            before.setdefault(at.argval, set()).add(line)
    for entry in _parse_exception_table(code):
        before.setdefault(entry.target, set()).add(None)
    return before


def _instructions(code: CodeType) -> Iterator[Any]:
    return dis.get_instructions(code)


def starts_of(code: CodeType, lines: Sequence[int]) -> dict[int, int]:
    """``{offset: line}``: the first instruction of each of ``lines``, wherever control may enter it."""
    starts: dict[int, int] = {}
    before: int | None = None
    for at in _instructions(code):
        line: int | None = at.positions.lineno if at.positions is not None else None
        if line is not None and line in lines and (line != before or at.is_jump_target):
            starts[at.offset] = line
        before = line
    return starts


def loops(code: CodeType, lines: Sequence[int]) -> list[tuple[set[int], set[int | None]]]:
    """Line events that can be left out if only plain Python runs on ``lines`` of ``code``.

    A list of ``(offsets, lines)``: control reaches ``offsets`` only from ``lines``, and they are on ``lines``
    themselves. So if their line events are left out, the line recorded last is always one of ``lines``.
    """
    origins, starts = came_from(code), starts_of(code, lines)
    inner = {
        offset: line for offset, line in starts.items() if origins[offset] and origins[offset] <= set(lines)
    }
    groups: list[tuple[set[int], set[int | None]]] = []  # (offsets, lines)
    for offset, line in inner.items():
        offsets, joined = {offset}, {line, *origins[offset]}
        apart: list[tuple[set[int], set[int | None]]] = []
        for group in groups:
            if group[1] & joined:
                offsets, joined = offsets | group[0], joined | group[1]
            else:
                apart.append(group)
        groups = [*apart, (offsets, joined)]
    return groups
