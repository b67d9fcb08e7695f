"""Line records by trace functions: Python before 3.12.

Each user frame has a local trace function; a library frame costs one call event. A trace function that the
script has set itself is still called.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import time_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ....wire.records import AGAIN
from ..inside.locations import NEITHER
from ..inside.tracing import tracer
from ..patches import Patches
from ..tracebacks import is_ours
from .coroutines import COROUTINE, RETURN, only_task
from .onlyline import GENERATOR, only_line
from .paused import Swapped

if TYPE_CHECKING:
    from ..patches import Function
    from .locations import BegunWithin, CodeLines, Locations
    from .loops import Loop

#: What ``sys.settrace`` takes; the script's own may be any callable.
TraceFunction = Callable[[FrameType, str, Any], Any]


class Tracing:
    kind = "settrace"

    def __init__(self, locations: Locations) -> None:
        self.locations = locations
        self.running = False
        #: Thread ident -> (global trace function, the script's own)
        self.entered: dict[int, tuple[TraceFunction, TraceFunction | None]] = {}
        #: Thread ident -> our trace function, where it is the only one: it may be switched off for a while
        self.alone: dict[int, TraceFunction] = {}
        #: The trace function that a debugger has set for new threads; restored afterwards.
        self.of_new_threads: TraceFunction | None = None
        self.pools = Patches()
        #: id(code) -> where a function begins that is recorded at its start and end only
        self.quick: dict[int, int] = {}
        self.swapped = Swapped(self._pause, self._resume)

    def skip(self, loops: list[Loop]) -> None:
        """Record functions of ``loops`` (Loops) only at their start and end, or not while a loop of theirs
        runs, from the next start on."""
        self.quick = {id(loop.code): next(iter(loop.shares)) for loop in loops if loop.paused is None}
        self.swapped.choose({loop.code: loop.paused for loop in loops if loop.paused is not None})
        for code, other in self.swapped.codes.items():
            self.locations.stands_for(other, code)

    def start(self) -> None:
        """Record from now on, in this thread, in the user's threads and in new ones."""
        self.running = True
        self.swapped.begin()
        self._follow_pools()
        self.of_new_threads = _theirs(_trace_hook())
        threading.settrace(self.first_in_thread)
        for ident, frame in sys._current_frames().items():
            if ident == threading.get_ident():
                self.enter_thread(frame)
            else:  # its trace function, if it has one, is WatchedThreads': that will call ours
                self._enter_frames(ident, frame)
        del frame  # it may be this one, which would never be freed, nor those that called it

    def _follow_pools(self) -> None:
        """Trace work submitted to a running pool, whose threads cannot be traced from outside."""
        pools = sys.modules.get("concurrent.futures.thread")
        if pools is None:
            return

        def entering(run: Function) -> Function:
            def entered(work: Callable[[], object]) -> Any:
                self.enter_thread()
                return run(work)

            return entered

        self.pools.replace(pools._WorkItem, "run", entering)

    def leave_out(self, codes: list[CodeType]) -> None:
        """Nothing to do: whether code is recorded is decided when a frame begins."""

    def enter_thread(self, frame: FrameType | None = None) -> None:
        """Record in the calling thread too; ``frame`` and those outside it are running already."""
        ident = threading.get_ident()
        if not self.running or ident in self.entered:
            return
        theirs = _theirs(sys.gettrace())
        trace = self.trace_of(ident)
        if theirs is not None:
            trace = both(theirs, self.trace_of(ident, every_line=True))
        self.entered[ident] = trace, theirs
        if theirs is None:
            self.alone[ident] = trace
        self._enter_frames(ident, frame or sys._getframe(1))
        sys.settrace(trace)

    def _enter_frames(self, ident: int, frame: FrameType | None) -> None:
        ours, innermost = self.trace_of(ident), frame
        here: FrameType | None = None
        user = self.locations.user_files
        while frame is not None:
            local = ours(frame, "outer", None)
            if local is not None:
                frame.f_trace = local if frame.f_trace is None else both(frame.f_trace, local)
                frame.f_trace_lines = True  # whoever traced it before may have had enough of its lines
                if here is None and user[frame.f_code.co_filename] is not None:
                    here = frame
            frame = frame.f_back
        records = self.locations.records(ident)
        lines = self.locations.lines_of(here.f_code) if here is not None else None
        if here is not None and lines is not None:
            records.add(time_ns())
            records.add(lines[here.f_lineno])
        if self.locations.library is not None:
            self.locations.library.came_back(innermost, records)

    def stop(self) -> list[str]:
        """End all of it. Returns notes about what could not be recorded."""
        self.running = False
        self.swapped.end()
        self.pools.restore()
        notes = []
        trace, theirs = self.entered.get(threading.get_ident(), (None, None))
        current = sys.gettrace()  # a later thread may have the number of one that has ended, and its own
        ours = current is not None and _theirs(current) is None
        if trace is not None and not ours:
            notes.append(
                "the script set a trace function during the capture: some lines after that are missing"
            )
        else:
            sys.settrace(theirs)
        if _trace_hook() == self.first_in_thread:
            threading.settrace(self.of_new_threads)
        frame: FrameType | None
        for frame in sys._current_frames().values():
            while frame is not None:
                if frame.f_trace is not None and is_ours(frame.f_trace.__code__.co_filename):
                    frame.f_trace = getattr(frame.f_trace, "theirs", None)
                    frame.f_trace_lines = True
                frame = frame.f_back
        self.entered.clear()
        self.alone.clear()
        return notes

    def pause(self) -> bool:
        """Switch our trace function off in this thread, unless it calls another one as well. Whether it is
        off now and was not before."""
        trace = self.alone.get(threading.get_ident())
        if not self.running or trace is None or sys.gettrace() is not trace:
            return False
        sys.settrace(None)
        return True

    def resume(self) -> None:
        """Switch it on again where it is off."""
        trace = self.alone.get(threading.get_ident())
        if self.running and trace is not None and sys.gettrace() is None:
            sys.settrace(trace)

    def _pause(self, number: int) -> bool:
        self.pause()
        return True

    def _resume(self, number: int) -> bool:
        self.resume()
        return True

    def first_in_thread(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace the first call of a new thread, and set the trace function of its later ones."""
        if not self.running:
            return None
        ident = threading.get_ident()
        self.alone[ident] = trace = self.trace_of(ident)
        sys.settrace(trace)
        return trace(frame, event, argument)

    def trace_of(self, ident: int, every_line: bool = False) -> TraceFunction:  # noqa: C901  # closures: quicker than methods
        """A global trace function that records for the thread ``ident``.

        A frame whose code lies on one line has one record, at its start, and no line events: a
        comprehension's would cost several times what it does. So has a quick function.
        ``every_line``: it has them, since another trace function wants them too.
        """
        user, of_code = self.locations.user_files, self.locations.of_code
        lines_of: Any = self.locations.lines_of  # never None for a file of the user's
        begun = self.locations.begun
        records = self.locations.records(ident)
        add, library = records.add, self.locations.library
        in_library = tracer(library, records) if library is not None else None
        # Nearly all calls are torch's own, so they must cost only one lookup.
        kind = library.kinds.get if library is not None else dict[int, int]().get
        locals_of: dict[int, TraceFunction] = {}  # by id(code)
        alone: dict[int, int] = {}  # id(code) -> the location it begins at

        def on_call(frame: FrameType, event: str, argument: Any) -> TraceFunction | None:
            code = frame.f_code
            if kind(id(code)) == NEITHER or not self.running:
                return None
            if user[code.co_filename] is None:
                return in_library(frame, event) if in_library is not None else None
            local = locals_of.get(id(code))
            if local is None:
                lines_of(code)
                local = locals_of[id(code)] = make_local(code, begun[id(code)])
                line = None if every_line else only_line(code)
                if line is not None:
                    alone[id(code)] = begun[id(code)][line]
                elif id(code) in self.quick and not every_line:
                    alone[id(code)] = self.quick[id(code)]
            if event == "call" and id(code) in alone:
                frame.f_trace_lines = False
                add(time_ns())
                add(alone[id(code)])
                return local
            if code.co_flags & GENERATOR and event == "call":
                add(time_ns())
                add(AGAIN | of_code[id(code)][frame.f_lineno])
            return local

        def make_local(code: CodeType, lines: CodeLines | BegunWithin) -> TraceFunction:
            waiting = code.co_code if code.co_flags & COROUTINE else None

            def on_line(frame: FrameType, event: str, argument: Any) -> TraceFunction | None:
                if event == "line":
                    add(time_ns())
                    add(lines[frame.f_lineno])
                elif event == "return":
                    if waiting and waiting[frame.f_lasti] != RETURN and only_task():
                        return on_line  # it is still at its ``await``
                    caller = frame.f_back
                    while caller is not None and user[caller.f_code.co_filename] is None:
                        caller = caller.f_back
                    add(time_ns())
                    add(AGAIN if caller is None else AGAIN | lines_of(caller.f_code)[caller.f_lineno])
                    if library is not None and caller is not frame.f_back:
                        library.came_back(frame.f_back, records)
                return on_line

            return on_line

        return on_call


def both(theirs: TraceFunction | None, ours: TraceFunction) -> TraceFunction:
    """A trace function that calls the script's and ours; ``.theirs`` is what the script's has become."""

    def trace(frame: FrameType, event: str, argument: Any) -> TraceFunction | None:
        mine = ours(frame, event, argument)
        other = theirs(frame, event, argument) if theirs is not None else None
        if event == "call":
            return both(other, mine) if other is not None and mine is not None else other or mine
        itself.theirs = other
        return trace

    itself: Any = trace
    itself.theirs = theirs
    return trace


def _theirs(hook: Any) -> TraceFunction | None:
    """``hook`` where it is the script's, None where it is one of ours."""
    code = getattr(hook, "__code__", None)
    found: TraceFunction | None = None if code is not None and is_ours(code.co_filename) else hook
    return found


def _trace_hook() -> Any:
    return threading._trace_hook  # type: ignore[attr-defined]


class WatchedThreads:
    """Makes threads traceable from outside.

    Before Python 3.12 a thread can only be traced if it had a trace function from its start. So each
    new one gets one that does nothing until a capture begins; torch's own threads do not need it.
    """

    def __init__(self) -> None:
        self.tracing: Any = None
        self.resting = False

    def rest(self, moves: bool) -> None:
        """Nothing is recorded for a while: a trace function that does nothing makes plain Python four times
        slower (3.11). The calling thread, which makes steps, is traced from within when a capture begins. If
        others make steps too (``moves``), those that begin now have ended by then."""
        if sys.gettrace() == self._idle:
            sys.settrace(None)
        if moves and _trace_hook() == self._first_call:
            threading.settrace(None)
            self.resting = True

    def go_on(self) -> None:
        """A capture comes soon."""
        if self.resting:
            self.resting = False
            self.start()

    def start(self) -> None:
        """Trace new threads, unless the script set a trace function of its own for them."""
        if _trace_hook() is None:
            threading.settrace(self._first_call)

    def stop(self) -> None:
        """Remove our trace function, if it is still there."""
        if _trace_hook() == self._first_call:
            threading.settrace(None)

    def _first_call(self, frame: FrameType, event: str, argument: Any) -> None:
        thread = threading.current_thread()
        work = getattr(thread, "_target", None) or type(thread).run
        if (getattr(work, "__module__", None) or "").partition(".")[0] == "torch":
            sys.settrace(None)
        else:
            sys.settrace(self._idle)

    def _idle(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self.tracing.first_in_thread(frame, event, argument) if self.tracing is not None else None
