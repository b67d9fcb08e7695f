"""What ``sys.monitoring`` calls for code of libraries: Python 3.12 and newer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import time_ns
from types import CodeType, FrameType
from typing import Any

from ....wire.records import AGAIN
from ..lines.locations import Records
from .locations import Around, InsideLines, LibraryLines


class LibraryEvents:
    """``started``, ``resumed``, ``line`` and ``left`` for code that ``watch`` has said True of."""

    def __init__(self, library: LibraryLines, records_of: Callable[[], Records]) -> None:
        self.library = library
        self.records_of = records_of
        self.watched: set[int] = set()  # ids of code with line events on
        #: ``lines``: InsideLines of the frame that runs; ``frames``: of those around it, the innermost
        #: last, so that no record has to walk the frames for its module
        self.local = threading.local()

    def frames(self) -> list[Around]:
        """The library frames that this thread is in, the innermost last."""
        try:
            found: list[Around] = self.local.frames
        except AttributeError:
            found = self.local.frames = []
        return found

    def watch(self, tool: int, code: CodeType) -> bool:
        """Switch line events of ``code`` on, if it is to be recorded."""
        if not self.library.is_recorded(code):
            return False
        self.watched.add(id(code))  # the library's lines keep the code, so that no id is given away again
        events = sys.monitoring.events  # type: ignore[attr-defined,unused-ignore]
        wanted = events.PY_RETURN | events.PY_YIELD | (0 if id(code) in self.library.brief else events.LINE)
        sys.monitoring.set_local_events(tool, code, wanted)  # type: ignore[attr-defined,unused-ignore]
        return True

    def started(self, frame: FrameType) -> InsideLines:
        """A library function begins in this thread."""
        frames = self.frames()
        lines = self.library.lines_of(frame, frames[-1] if frames else None)
        frames.append((id(frame), lines))
        self.local.lines = lines
        if lines.brief:
            add = self.records_of().library.append
            add(time_ns())
            add(lines[0])
        return lines

    def resumed(self, frame: FrameType) -> None:
        """A generator goes on, or an exception is thrown into it."""
        lines = self.started(frame)
        add = self.records_of().library.append
        add(time_ns())
        add(AGAIN | lines[frame.f_lineno])

    def line(self, tool: int, code: CodeType, line: int) -> Any:
        """A library line begins. A function that runs too many lines is left out from then on."""
        lines = getattr(self.local, "lines", None)
        if lines is None or lines.code is not code:
            frames = self.frames()
            around = frames[-1] if frames else None
            if around is not None and around[1].code is code:
                lines = around[1]
            else:
                lines = self.library.lines_of(_frame_of(code), around)
            self.local.lines = lines
        lines.left -= 1
        if lines.left < 0:
            self.library.leave_out(code)
            self.watched.discard(id(code))
            sys.monitoring.set_local_events(tool, code, 0)  # type: ignore[attr-defined,unused-ignore]
            self.left(_frame_of(code))
            return None
        add = self.records_of().library.append
        add(time_ns())
        add(lines[line])
        return None

    def left(self, frame: FrameType, user_follows: bool = True) -> None:
        """Python leaves ``frame``: a library's, or with ``user_follows`` False a user's."""
        self.local.lines = None
        frames, number = self.frames(), id(frame)
        for at in range(len(frames) - 1, -1, -1):
            if frames[at][0] == number:
                del frames[at:]  # and what an exception left inside of it
                break
        around = frames[-1] if frames else None
        self.library.came_back(frame.f_back, self.records_of(), user_follows, around)


def _frame_of(code: CodeType) -> FrameType:
    """The innermost frame that runs ``code``: a callback of ours is inside of it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    assert frame is not None
    return frame
