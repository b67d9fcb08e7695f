"""Line records by trace functions: Python before 3.12.

Each frame of the user's has a local trace function; library frames cost one call event and no more.
"""

import sys
import threading
from time import time_ns

_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


class Tracing:
    kind = "settrace"

    def __init__(self, locations):
        self.locations = locations
        self.running = False
        self.globals = {}  # thread ident -> global trace function

    def start(self):
        """Record from now on: in this thread, in all frames that it is in, and in new threads."""
        self.running = True
        threading.settrace(self._first_in_thread)
        self.enter_thread(sys._getframe(1))

    def enter_thread(self, frame=None):
        """Record in the calling thread too; ``frame`` and those outside it are running already."""
        if not self.running:
            return
        trace = self._global()
        sys.settrace(trace)
        records, here = self.locations.records(), None
        while frame is not None:
            local = trace(frame, "outer", None)
            if local is not None:
                frame.f_trace = local
                here = here or frame
            frame = frame.f_back
        if here is not None:
            records.add(time_ns())
            records.add(self.locations.lines_of(here.f_code)[here.f_lineno])

    def stop(self):
        self.running = False
        sys.settrace(None)
        threading.settrace(None)
        frame = sys._getframe(1)
        while frame is not None:
            if self.locations.user_files[frame.f_code.co_filename] is not None:
                frame.f_trace = None
            frame = frame.f_back
        self.globals.clear()

    def _first_in_thread(self, frame, event, argument):
        trace = self._global()
        sys.settrace(trace)
        return trace(frame, event, argument)

    def _global(self):
        ident = threading.get_ident()
        found = self.globals.get(ident)
        if found is None:
            found = self.globals[ident] = self._make_global()
        return found

    def _make_global(self):
        user, of_code, lines_of = self.locations.user_files, self.locations.of_code, self.locations.lines_of
        add = self.locations.records().add
        locals_of = {}

        def on_call(frame, event, argument):
            code = frame.f_code
            if user[code.co_filename] is None:
                return None
            local = locals_of.get(id(code))
            if local is None:
                local = locals_of[id(code)] = make_local(lines_of(code))
            if code.co_flags & _GENERATOR and event == "call":
                add(time_ns())
                add(of_code[id(code)][frame.f_lineno])
            return local

        def make_local(lines):
            def on_line(frame, event, argument):
                if event == "line":
                    add(time_ns())
                    add(lines[frame.f_lineno])
                elif event == "return":
                    caller = frame.f_back
                    while caller is not None and user[caller.f_code.co_filename] is None:
                        caller = caller.f_back
                    add(time_ns())
                    add(0 if caller is None else lines_of(caller.f_code)[caller.f_lineno])
                return on_line

            return on_line

        return on_call
