"""Line records by ``sys.monitoring``: Python 3.12 and newer.

Line events are switched on only for the user's code objects. A library's code object causes one event, when
it starts for the first time, and is switched off then.
"""

from __future__ import annotations

import sys
from time import time_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ....wire.records import AGAIN
from ..inside.monitoring import LibraryEvents
from .coroutines import COROUTINE, only_task
from .locations import Standing

if TYPE_CHECKING:
    from ..patches import Function
    from .locations import Locations, Records
    from .loops import Loop

#: Not there before 3.12, and so not known to the checker, which reads us as Python 3.10.
_monitoring: Any = getattr(sys, "monitoring", None)
NO_TOOL = -1


def free_tool() -> int | None:
    """A free tool id of ``sys.monitoring``, except the one that cProfile needs."""
    return next((tool for tool in (4, 3, 5, 1, 0) if _monitoring.get_tool(tool) is None), None)


class Monitoring:
    kind = "monitoring"

    def __init__(self, locations: Locations) -> None:
        self.locations = locations
        self.quick: dict[int, set[int]] = {}  # id(code) -> offsets at which line events are left out
        self.tool = NO_TOOL
        self.running = False
        self.watched: dict[int, CodeType] = {}  # id(code) -> code
        self.library: LibraryEvents | None = None

    def skip(self, loops: list[Loop]) -> None:
        """Leave out the line events of ``loops`` (Loops), from the next start on."""
        self.quick = {}
        for loop in loops:
            self.quick.setdefault(id(loop.code), set()).update(loop.offsets or ())

    def start(self) -> None:
        """Record from now on, in all threads and in all frames that they are in."""
        monitoring = _monitoring
        self.running = True
        tool = free_tool()
        assert tool is not None  # ``events.usable`` has looked
        self.tool = tool
        monitoring.use_tool_id(self.tool, "warpline")
        events = monitoring.events
        if self.locations.library is not None:
            self.library = LibraryEvents(self.locations.library)
        self.local_events = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        on_line, on_leave, on_yield, on_resume, on_throw, on_start = self._callbacks()
        self.registered = {
            events.LINE: on_line,
            events.PY_RETURN: on_leave,
            events.PY_YIELD: on_yield,
            events.PY_RESUME: on_resume,
            events.PY_THROW: on_throw,
            events.PY_UNWIND: on_leave,
            events.PY_START: on_start,
        }
        for event, callback in self.registered.items():
            monitoring.register_callback(self.tool, event, callback)
        # Before any event: a thread that records a line meanwhile would put its pair between our two numbers.
        for ident, innermost in sys._current_frames().items():
            here = self.locations.user_files.nearest(innermost)
            lines = self.locations.lines_of(here.f_code) if here is not None else None
            if here is not None and lines is not None:  # also of a thread that only waits at that line
                records = self.locations.records(ident)
                records.add(time_ns())
                records.add(lines[here.f_lineno or here.f_code.co_firstlineno])  # None as it begins
        del innermost  # it may be this one, which would never be freed, nor those that called it
        for ident, innermost in sys._current_frames().items():
            self._enter(ident, innermost)
        del innermost
        monitoring.set_events(
            self.tool, events.PY_START | events.PY_RESUME | events.PY_UNWIND | events.PY_THROW
        )
        if self.library is not None:
            self.library.library.came_back(sys._getframe(1), self.locations.records())

    def leave_out(self, codes: list[CodeType]) -> None:
        """Switch the line events of ``codes``, code of libraries, off; those of calls stay where they are
        still recorded."""
        library = self.library
        if library is None:
            return
        for code in codes:
            if not library.watch(self.tool, code):
                library.unwatch(self.tool, code)
        for records in self.locations.all_records:
            library.forget(records)

    def enter_thread(self, frame: FrameType | None = None) -> None:
        """Nothing to do: ``sys.monitoring`` watches all threads."""

    def pause(self) -> bool:
        """Nothing to do: code of libraries runs as quickly while lines are recorded."""
        return False

    def resume(self) -> None:
        """Nothing to do either."""

    def stop(self) -> list[str]:
        """End all of it. Returns notes about what could not be recorded: none here."""
        monitoring = _monitoring
        monitoring.set_events(self.tool, 0)
        for code in self.watched.values():
            monitoring.set_local_events(self.tool, code, 0)
        for event in self.registered:
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        if self.quick:
            monitoring.restart_events()
        self.running = False
        for records in self.locations.all_records:
            records.keep([])
        self.watched.clear()
        self.tool = NO_TOOL
        return []

    def _enter(self, ident: int, innermost: FrameType) -> None:
        """Watch the code of the frames that a thread is in; they are the outermost of its frames."""
        standing: list[Standing] = []
        frame: FrameType | None = innermost
        while frame is not None:
            code, library = frame.f_code, self.locations.library
            if self._watch(code):
                if self.locations.lines_of(code) is not None:
                    one = Standing(code, self.locations.begun[id(code)])
                else:
                    assert library is not None  # ``_watch`` said that it is a library's
                    lines = library.lines_of(frame)
                    one = Standing(code, lines, lines, hash(frame))
                one.place = one.lines[frame.f_lineno or code.co_firstlineno]
                standing.append(one)
            frame = frame.f_back
        if standing:
            self.locations.records(ident).keep(standing[::-1])

    def _watch(self, code: CodeType) -> bool:
        """Switch the line events of ``code`` on if it is the user's; True if it is."""
        if self.locations.lines_of(code) is None:
            return self._watch_library(code)
        if id(code) not in self.watched:
            self.watched[id(code)] = code
            _monitoring.set_local_events(self.tool, code, self.local_events)
        return True

    def _watch_library(self, code: CodeType) -> bool:
        if self.library is None or not self.library.library.is_recorded(code):
            return False
        if id(code) not in self.watched:
            self.watched[id(code)] = code
            self.library.watch(self.tool, code)
        return True

    def _callbacks(self) -> tuple[Function, ...]:  # noqa: C901, PLR0915  # closures: quicker than methods
        user, begun = self.locations.user_files, self.locations.begun
        lines_of: Any = self.locations.lines_of  # never None for a file of the user's
        local, records_of = self.locations.local, self.locations.records
        get_frame, disable = sys._getframe, _monitoring.DISABLE
        watch, watched, quick = self._watch, self.watched, self.quick
        library, tool = self.library, self.tool
        of_libraries = library.watched if library is not None else {}

        def on_line(code: CodeType, line: int) -> None:
            try:
                records = local.records
            except AttributeError:
                records = records_of()
            top = records.top
            if top.code is not code:
                top = records.find(code) or unseen(code, records)
                if top is None:
                    return
            inside = top.inside
            if inside is None:
                add = records.add
            else:
                if inside.brief:  # line events are on for another frame of the code
                    return
                inside.left -= 1
                if inside.left < 0:
                    library.gives_up(tool, code, records)  # type: ignore[union-attr]
                    return
                add = records.library.append
            add(time_ns())
            top.place = place = top.lines[line]
            add(place)

        def unseen(code: CodeType, records: Records) -> Standing | None:
            """The innermost frame of ``code``, whose beginning was not seen."""
            if lines_of(code) is not None:
                found = Standing(code, begun[id(code)])
            elif library is not None and id(code) in library.watched:
                found = library.standing(_frame_of(code), code, records, library.watched[id(code)])
            else:
                return None
            records.enter(found)
            return found

        def on_line_of_quick(code: CodeType, line: int) -> Any:
            offsets = quick.get(id(code))
            if offsets is not None and get_frame(1).f_lasti in offsets:
                return disable
            return on_line(code, line)

        def record(frame: FrameType | None) -> None:
            while frame is not None and user[frame.f_code.co_filename] is None:
                frame = frame.f_back
            add = records_of().add
            add(time_ns())
            add(AGAIN if frame is None else AGAIN | lines_of(frame.f_code)[frame.f_lineno])

        def ends(code: CodeType) -> bool:
            """Drop the frame of ``code`` from its thread's; return whether its lines are recorded."""
            records = records_of()
            if records.top.code is code or records.find(code) is not None:
                records.leave()
                return True
            return user[code.co_filename] is not None or id(code) in watched

        def left(code: CodeType) -> None:
            """A frame of ``code`` ends, and what called it goes on. To be called by a callback itself."""
            if not ends(code):
                return
            of_user = user[code.co_filename] is not None
            if of_user:
                record(get_frame(2).f_back)
            if library is not None:
                library.goes_on(records_of(), user_follows=not of_user)

        def on_leave(code: CodeType, offset: int, value_or_error: object) -> None:
            left(code)

        def on_yield(code: CodeType, offset: int, value: Any) -> None:
            if code.co_flags & COROUTINE and only_task():
                ends(code)  # for the records it is still at its ``await``
            else:
                left(code)

        def on_resume(code: CodeType, offset: int) -> Any:
            if not watch(code):
                return disable
            resumed(code, get_frame(1))
            return None

        def on_throw(code: CodeType, offset: int, error: object) -> None:
            if watch(code):
                resumed(code, get_frame(1))

        def resumed(code: CodeType, frame: FrameType) -> None:
            if user[code.co_filename] is not None:
                records_of().enter(Standing(code, begun[id(code)]))
                record(frame)
            elif library is not None:
                library.resumed(frame, code, records_of())

        def on_start(code: CodeType, offset: int) -> Any:
            known = of_libraries.get(id(code))
            if known is None:
                if not watch(code):
                    return disable
                if user[code.co_filename] is not None:
                    records_of().enter(Standing(code, begun[id(code)]))
                    return None
                known = of_libraries[id(code)]
            # ``of_libraries`` is empty where there is no ``library``; an assertion would cost each call.
            library.started(tool, get_frame(1), code, records_of(), known)  # type: ignore[union-attr]
            return None

        return (on_line_of_quick if quick else on_line), on_leave, on_yield, on_resume, on_throw, on_start


def _frame_of(code: CodeType) -> FrameType:
    """The innermost frame that runs ``code``: a callback of ours is inside of it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    assert frame is not None
    return frame
