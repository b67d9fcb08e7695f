"""Code that lies on one line: comprehensions, lambdas, functions of one short statement."""

from __future__ import annotations

import dis
from types import CodeType

GENERATOR = 0x20 | 0x80 | 0x200  # COGENERATOR, CO_COROUTINE, CO_ASYNCGENERATOR
#: Instructions at the start of a frame; they have the line of the ``def`` and no line event.
_PROLOGUE = frozenset(
    dis.opmap[name] for name in ("COPY_FREE_VARS", "MAKE_CELL", "RESUME") if name in dis.opmap
)


def only_line(code: CodeType) -> int | None:
    """The one line on which all of ``code`` lies; None if there are several, or it is a generator."""
    if code.co_flags & GENERATOR:
        return None
    begin = 0
    while begin < len(code.co_code) and code.co_code[begin] in _PROLOGUE:
        begin += 2
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    lines = {line for (_, line), end in zip(starts, ends) if end > begin and line is not None}
    return lines.pop() if len(lines) == 1 else None
