"""Where the script enters and leaves compiled code.

Dynamo compiles a function again if torch's stacks of modes are not as they were. What watches a step with a
mode takes it off while compiled code runs, so this code stays as it is, and unobserved.

What ``torch.compile`` returns is a closure of Dynamo's that sets the callback of the interpreter as it
begins and, at its very end, back: at these calls modes can be taken off and put back. Later in the closure
it is too late: it restores the thread's dispatch keys, which lead to the modes.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..patches import Function, Patches
from ..texts import codes_in

_MODULE = "torch._dynamo.eval_frame"
_SETS = ("set_eval_frame", "_maybe_set_eval_frame")
#: A variable of the closure. In the one for code that is not to be compiled it is None (torch 2.4), or there
#: is none of this name.
_COMPILES = "callback"


class Watch(NamedTuple):
    """Called with the closure's frame, as an outermost compiled call begins and ends."""

    entered: Callable[[FrameType], None]
    left: Callable[[FrameType], None]


class Regions:
    """The compiled calls of one thread."""

    def __init__(self) -> None:
        self.patches = Patches()
        self.watch: Watch | None = None
        self.running: list[FrameType] = []  # of the closures, the outermost one first
        self.thread = 0
        self._last: dict[CodeType, int] = {}

    def start(self, watch: Watch) -> bool:
        """Begin on this thread, or go on. False if it is in compiled code now, or if the compiler cannot be
        watched."""
        if self.watch is not None:
            return True
        module = sys.modules.get(_MODULE)
        if module is None:
            self.watch = None  # nothing is compiled yet
            return True
        sets = vars(module).get(_SETS[0])
        if sets is None or any(map(_compiles, _callers(sys._getframe(1)))):
            return False
        _skip_ours(module)
        self.thread, self.watch = get_ident(), watch
        self.running.clear()
        for name in _SETS:
            if vars(module).get(name) is sets:
                self.patches.replace(module, name, self._set)
        return True

    def stop(self) -> None:
        """End, within compiled code too: nothing is put back then."""
        self.patches.restore()
        self.watch = None
        self.running.clear()

    def _set(self, original: Function) -> Function:
        # What runs after a callback was set is compiled, ours too.
        def set_eval_frame(callback: Any) -> Any:
            frame: FrameType | None = sys._getframe(1)
            if frame is not None and frame.f_code.co_name == _SETS[1]:
                frame = frame.f_back
            if frame is None or self.watch is None or not _compiles(frame) or get_ident() != self.thread:
                return original(callback)
            if frame not in self.running:
                self._begin(frame)
            elif frame.f_lineno >= self._last_line(frame.f_code):
                if callback is None and frame is self.running[0]:
                    result = original(callback)
                    self._end(frame)
                    return result
                self._end(frame)
            return original(callback)

        return set_eval_frame

    def _begin(self, frame: FrameType) -> None:
        callers = set(_callers(frame))
        # One whose end was not seen is over if it does not call this one.
        while self.running and self.running[-1] not in callers:
            self._end(self.running[-1])
        self._last_line(frame.f_code)
        self.running.append(frame)
        if len(self.running) == 1 and self.watch is not None:
            self._tell(self.watch.entered, frame)

    def _end(self, frame: FrameType) -> None:
        del self.running[self.running.index(frame) :]
        if not self.running and self.watch is not None:
            self._tell(self.watch.left, frame)

    def _tell(self, watch: Callable[[FrameType], None], frame: FrameType) -> None:
        try:
            watch(frame)
        except Exception:  # another version of torch: the script goes on, unobserved
            self.watch = None

    def _last_line(self, code: CodeType) -> int:
        """The line of ``code`` that sets the callback last."""
        found = self._last.get(code)
        if found is None:
            line, lines = code.co_firstlineno, dict(dis.findlinestarts(code))
            found = line
            for instruction in dis.get_instructions(code):
                line = lines.get(instruction.offset) or line
                if instruction.argval in _SETS:
                    found = max(found, line)
            self._last[code] = found
        return found


def _skip_ours(module: Any) -> None:
    """A compiled function that calls another one runs our code with the callback set."""
    skip: Any = getattr(module, "skip_code", None)
    functions: list[Any] = [*vars(Regions).values(), _compiles, _callers]
    for function in functions if skip is not None else ():
        for code in codes_in(getattr(function, "__code__", None)):
            skip(code)


def _compiles(frame: FrameType) -> bool:
    code = frame.f_code
    if _COMPILES not in code.co_freevars or frame.f_globals.get("__name__") != _MODULE:
        return False
    return frame.f_locals.get(_COMPILES) is not None


def _callers(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
