"""Local trace functions for frames of libraries: Python before 3.12."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from types import FrameType
from typing import Any

from ....wire.records import AGAIN
from ..lines.locations import Records
from .locations import LIBRARY, RESUMED, InsideLines, LibraryLines

Local = Callable[[FrameType, str, Any], Any]


def tracer(library: LibraryLines, records: Records) -> Callable[[FrameType, str], Local | None]:
    """What gives the local trace function for a frame of a library, for one thread; None for others.

    The function has the frame's lines as its attribute ``inside``.
    """
    add, kinds = records.library.append, library.kinds
    kind, lines_of = library.kind, library.lines_of
    known: dict[int, Local] = {}  # id(InsideLines) -> its local trace function

    def in_library(frame: FrameType, event: str) -> Local | None:
        code = frame.f_code
        of = kinds.get(id(code))
        if (kind(code) if of is None else of) != LIBRARY:
            return None
        lines = begun = lines_of(frame)
        if event == "call" and lines.brief:
            lines = lines.in_this_call()
        local = known.get(id(lines))
        if local is None:
            local = known[id(lines)] = make_local(lines)
        if event == "call" and (begun.brief or code.co_flags & RESUMED):
            frame.f_trace_lines = not lines.brief
            add(time_ns())
            add((AGAIN if code.co_flags & RESUMED else 0) | begun[frame.f_lineno])
        return local

    def make_local(lines: InsideLines) -> Local:
        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line" and lines.brief:  # it ran already when that was decided
                frame.f_trace_lines = False
            elif event == "line":
                lines.left -= 1
                if lines.left < 0:
                    library.leave_out(lines.code)
                    frame.f_trace_lines = False
                    library.came_back(frame.f_back, records, even_to_user=True)
                    return on_line
                add(time_ns())
                add(lines[frame.f_lineno])
            elif event == "return":
                library.came_back(frame.f_back, records, even_to_user=True)
            return on_line

        on_line.inside = lines  # type: ignore[attr-defined]
        return on_line

    return in_library
