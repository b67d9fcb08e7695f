"""Notes which lines of the user's files have run, each once, from the script's start to the first steps.

Python 3.12 and later: ``sys.monitoring`` LINE events of user code. Each is switched off at its first hit, so
a line costs only once. Before 3.12: a trace function, which is called for every function call. It pauses
while a library is imported, ends with the first step, and gives up after ``MOST_EVENTS`` calls (see ``why``).
"""

from __future__ import annotations

import dis
import sys
import threading
from types import CodeType, FrameType, ModuleType
from typing import Any, Callable, Dict, List, Optional, Tuple

from .userfiles import UserFiles

#: Calls of the trace function, of about 0.15 microseconds each: 0.3 s at most.
MOST_EVENTS = 2_000_000
#: After so many line events of a code object without a new line, it is no longer traced.
SETTLED_LINES = 5_000
_DYNAMO = "torch/_dynamo/convert_frame.py"


class Executed:
    """``order`` has ``(path, line)`` -> number of its first run."""

    def __init__(self, user_files: UserFiles) -> None:
        self.user_files = user_files
        self.order: Dict[Tuple[str, int], int] = {}
        self.partial: Dict[str, List[Tuple[int, int]]] = {}
        self.why = ""
        self.running = False
        modern = sys.version_info >= (3, 12)
        self._way: Any = _Monitoring(self) if modern else _Tracing(self)

    def start(self) -> None:
        """Note lines from now on, in the calling thread and (Python 3.12) in all others."""
        self.running = self._way.start()

    def first_step(self) -> None:
        """The first step has ended: stop what would slow every step."""
        if self.running and isinstance(self._way, _Tracing):
            self.stop()

    def pause(self) -> bool:
        """Pause the trace function of this thread during our own work. Whether there was one."""
        return isinstance(self._way, _Tracing) and self._way.pause()

    def resume(self) -> None:
        """Note lines again after a pause."""
        self._way.resume()

    def stop(self) -> None:
        """Stop noting lines, for good."""
        if self.running:
            self.running = False
            self._way.stop()

    def add(self, path: str, line: int) -> None:
        """Note that a line ran; only its first time counts."""
        self.order.setdefault((path, line), len(self.order))

    def only_begun(self, path: str, code: CodeType) -> None:
        """Stop noting lines of ``code``."""
        lines = [line for _, line in dis.findlinestarts(code) if line]
        self.partial.setdefault(path, []).append((min(lines), max(lines)))

    def ran(self, path: str, line: int) -> Optional[int]:
        """The position of the line's first run in the order of first runs; None if no run was seen."""
        return self.order.get((path, line))

    def knows(self, path: str, line: int) -> bool:
        """Whether a run of the line would have been seen."""
        if not self.order or self.why:
            return False
        return not any(first <= line <= last for first, last in self.partial.get(path, ()))

    def as_dict(self) -> Dict[str, Any]:
        """``wire.births.Executed``."""
        lines: Dict[str, List[int]] = {}
        for path, line in self.order:
            lines.setdefault(path, []).append(line)
        complete = bool(self.order) and not self.why
        return {"lines": lines, "partial": self.partial, "complete": complete, "why": self.why}


class _Monitoring:
    def __init__(self, executed: Executed) -> None:
        self.executed = executed
        self.tool: Optional[int] = None
        self.watched: List[CodeType] = []

    def start(self) -> bool:
        monitoring: Any = vars(sys)["monitoring"]  # from Python 3.12 on
        self.tool = next((tool for tool in (3, 4, 5, 1, 0) if monitoring.get_tool(tool) is None), None)
        if self.tool is None:
            self.executed.why = "every tool id of sys.monitoring was in use"
            return False
        monitoring.use_tool_id(self.tool, "warpline")
        events, disable, tool = monitoring.events, monitoring.DISABLE, self.tool
        user, add, watched = self.executed.user_files, self.executed.add, self.watched

        def on_start(code: CodeType, offset: int) -> Any:
            if user[code.co_filename] is not None:
                watched.append(code)
                monitoring.set_local_events(tool, code, events.LINE)
            return disable

        def on_line(code: CodeType, line: int) -> Any:
            path = user[code.co_filename]
            if path is not None:
                add(path, line)
            return disable

        monitoring.register_callback(tool, events.PY_START, on_start)
        monitoring.register_callback(tool, events.LINE, on_line)
        monitoring.set_events(tool, events.PY_START)
        return True

    def stop(self) -> None:
        monitoring: Any = vars(sys)["monitoring"]  # from Python 3.12 on
        monitoring.set_events(self.tool, 0)
        for code in self.watched:
            monitoring.set_local_events(self.tool, code, 0)
        for event in (monitoring.events.PY_START, monitoring.events.LINE):
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)
        self.watched.clear()


class _Tracing:
    def __init__(self, executed: Executed) -> None:
        self.executed = executed
        self.thread = 0
        self.finder = _LibraryFinder(self)

    def start(self) -> bool:
        if sys.gettrace() is not None:
            self.executed.why = "a debugger or another tracer was running"
            return False
        self.thread = threading.get_ident()
        self.trace = self._trace()
        sys.meta_path.insert(0, self.finder)
        sys.settrace(self.trace)
        return True

    def pause(self) -> bool:
        """Pause it in this thread. Whether it was running."""
        if not self.executed.running or sys.gettrace() is not self.trace:
            return False
        sys.settrace(None)
        return True

    def resume(self) -> None:
        if self.executed.running and sys.gettrace() is None:
            sys.settrace(self.trace)

    def stop(self) -> None:
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        frame = sys._current_frames().get(self.thread)
        while frame is not None:
            if getattr(frame.f_trace, "__qualname__", "").startswith("_Tracing."):
                frame.f_trace = None
                frame.f_trace_lines = True
            frame = frame.f_back
        if threading.get_ident() == self.thread:
            if sys.gettrace() is self.trace:
                sys.settrace(None)
            elif not self.executed.why:
                self.executed.why = "the script set a trace function of its own"

    def _give_up(self, why: str) -> None:
        self.executed.why = self.executed.why or why
        self.executed.stop()

    def _trace(self) -> Callable[[FrameType, str, Any], Any]:
        user, add = self.executed.user_files, self.executed.add
        locals_of: Dict[int, Any] = {}
        codes: List[CodeType] = []  # kept alive: their ids are keys
        start_thread = threading.Thread.start.__code__
        events = 0

        def on_call(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal events
            code = frame.f_code
            events += 1
            if events & 0xFFF == 0 and not self._affordable(events):
                return None
            if user[code.co_filename] is None:
                if code is start_thread:
                    self._thread(frame.f_locals.get("self"))
                elif code.co_filename.endswith(_DYNAMO):
                    self._give_up("code was being compiled")
                return None
            local = locals_of.get(id(code))
            if local is None:
                codes.append(code)
                local = locals_of[id(code)] = make_local(code)
            return local or None

        def make_local(code: CodeType) -> Any:
            path, seen = user[code.co_filename] or "", set()
            since = 0

            def on_line(frame: FrameType, event: str, argument: Any) -> Any:
                nonlocal since, events
                if event != "line":
                    return on_line
                line = frame.f_lineno
                if line not in seen:
                    seen.add(line)
                    since = 0
                    add(path, line)
                    return on_line
                since += 1
                events += 1
                if since > SETTLED_LINES:
                    frame.f_trace_lines = False
                    locals_of[id(code)] = False
                    self.executed.only_begun(path, code)
                return on_line

            return on_line

        return on_call

    def _affordable(self, events: int) -> bool:
        if not self.executed.running:
            return False
        if events > MOST_EVENTS:
            self._give_up("the script ran long before its first step")
            return False
        return True

    def _thread(self, thread: Any) -> None:
        """The script starts a thread; lines that it runs are not seen."""
        work = getattr(thread, "_target", None) or type(thread).run
        code = getattr(work, "__code__", None)
        if code is not None and self.executed.user_files[code.co_filename] is not None:
            self.executed.why = "the script started threads"


class _LibraryFinder:
    """Pauses the trace function while a library's module is executed for the first time."""

    def __init__(self, tracing: _Tracing) -> None:
        self.tracing = tracing
        self.asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self.asking or sys.gettrace() is not self.tracing.trace:
            return None  # a library's own imports
        self.asking = True
        try:
            return self._wrapped(name, path, target)
        finally:
            self.asking = False

    def _wrapped(self, name: str, path: Any, target: Any) -> Any:
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec: Any = finder.find_spec(name, path, target)
            if spec is None:
                continue
            file = getattr(spec, "origin", None) or ""
            library = file.endswith(".py") and self.tracing.executed.user_files[file] is None
            if library and hasattr(spec.loader, "exec_module"):
                spec.loader = _Resting(spec.loader, self.tracing)
            return spec
        return None


class _Resting:
    """A loader that does all that ``loader`` does, and runs the module untraced."""

    def __init__(self, loader: Any, tracing: _Tracing) -> None:
        self.loader = loader
        self.tracing = tracing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self.loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = self.loader
        spec: Any = module.__spec__
        if spec is not None and spec.loader is self:
            spec.loader = self.loader
        rests = self.tracing.pause()
        try:
            self.loader.exec_module(module)
        finally:
            if rests:
                self.tracing.resume()
