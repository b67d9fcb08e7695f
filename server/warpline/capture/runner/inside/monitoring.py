"""What ``sys.monitoring`` calls for code of libraries: Python 3.12 and newer."""

from __future__ import annotations

import sys
from time import time_ns
from types import CodeType, FrameType

from ....wire.records import AGAIN
from ..lines.locations import Records, Standing
from .locations import InsideLines, LibraryLines
from .modules import NO_MODULE


class LibraryEvents:
    """``started``, ``resumed``, ``gives_up`` and ``goes_on`` for code that ``watch`` has said True of."""

    def __init__(self, library: LibraryLines) -> None:
        self.library = library
        #: id of code with events of its own -> module -> the lines that it has there
        self.watched: dict[int, dict[int, InsideLines]] = {}
        self.in_full: set[int] = set()  # ids of brief code whose line events are on, for one of its calls

    def watch(self, tool: int, code: CodeType) -> bool:
        """Switch line events of ``code`` on, if it is to be recorded."""
        if not self.library.is_recorded(code):
            return False
        # The library's lines keep the code, so that no id is given away again.
        self.watched.setdefault(id(code), {})
        self._listen(tool, code, lines=id(code) not in self.library.brief)
        return True

    def _listen(self, tool: int, code: CodeType, lines: bool) -> None:
        events = sys.monitoring.events  # type: ignore[attr-defined,unused-ignore]
        wanted = events.PY_RETURN | events.PY_YIELD | (events.LINE if lines else 0)
        sys.monitoring.set_local_events(tool, code, wanted)  # type: ignore[attr-defined,unused-ignore]

    def unwatch(self, tool: int, code: CodeType) -> None:
        """Switch all events of ``code`` off that are its own."""
        self.watched.pop(id(code), None)
        sys.monitoring.set_local_events(tool, code, 0)  # type: ignore[attr-defined,unused-ignore]

    def standing(
        self, frame: FrameType, code: CodeType, records: Records, known: dict[int, InsideLines]
    ) -> Standing:
        """A library's frame of ``code`` within those that run in this thread."""
        outer, module = 0, NO_MODULE
        for one in reversed(records.frames):
            if one.inside is not None:
                outer, module = one.frame, one.inside.module
                break
        if not outer or hash(frame.f_back) != outer:
            module = self.library.modules.of(frame, outer, module)
        lines = known.get(module)
        if lines is None:
            lines = known[module] = self.library.lines_for(code, module)
        return Standing(code, lines, lines, hash(frame))

    def started(
        self, tool: int, frame: FrameType, code: CodeType, records: Records, known: dict[int, InsideLines]
    ) -> None:
        """A library's function begins; ``known``: of ``watched``."""
        standing = self.standing(frame, code, records, known)
        records.enter(standing)
        if standing.inside is not None and standing.inside.brief:
            records.library.append(time_ns())
            standing.place = place = standing.lines[0]
            records.library.append(place)
            lines = standing.inside.in_this_call()
            if not lines.brief:
                standing.lines = standing.inside = lines
                self.in_full.add(id(code))
                self._listen(tool, code, lines=True)
            elif id(code) in self.in_full and not self._runs_in_full(code):
                self.in_full.discard(id(code))
                self._listen(tool, code, lines=False)

    def _runs_in_full(self, code: CodeType) -> bool:
        """Whether a call of ``code`` that has all of its lines recorded is still running, in any thread."""
        return any(
            one.code is code and one.inside is not None and not one.inside.brief
            for records in self.library.user.all_records
            for one in records.frames
        )

    def resumed(self, frame: FrameType, code: CodeType, records: Records) -> None:
        """A generator goes on, or an exception is thrown into it."""
        standing = self.standing(frame, code, records, self.watched[id(code)])
        records.enter(standing)
        records.library.append(time_ns())
        standing.place = place = standing.lines[frame.f_lineno]
        records.library.append(AGAIN | place)

    def gives_up(self, tool: int, code: CodeType, records: Records) -> None:
        """The top's code runs too many lines: it is left out from now on, and its caller goes on."""
        self.library.leave_out(code)
        self.unwatch(tool, code)
        self.forget(records)
        self.goes_on(records, user_follows=True)

    def forget(self, records: Records) -> None:
        """Drop the frames of code that is left out; what is brief from now on stands at its ``def``."""
        watched = self.watched
        records.keep([one for one in records.frames if one.inside is None or id(one.code) in watched])
        for one in records.frames:
            if one.inside is not None and one.inside.brief:
                one.place = one.lines[0]

    def goes_on(self, records: Records, user_follows: bool) -> None:
        """The top goes on: note its line if it is a library's, else with ``user_follows`` that it is none."""
        top = records.top
        if top.inside is not None:
            records.library.append(time_ns())
            records.library.append(AGAIN | top.place)
        elif user_follows:
            records.library.append(time_ns())
            records.library.append(AGAIN)
