"""Times the calls of ``generate`` and the forward passes of their model.

Only the model itself is watched, and only while it generates: its modules are called as always. That takes
about three microseconds a pass, so passes are noted while steps are timed as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import time_ns
from typing import Any, Optional, Tuple

from ....wire.generation import CALL, DECODE, ENCODER, PREFILL, Generation

Place = Tuple[str, int, str]  # file, line, function
#: begin, end, kind, native id of the thread, the line that calls ``generate``
Span = Tuple[int, int, int, int, Place]
#: What torch calls in place of a module's ``__call__`` after ``module.compile()``.
COMPILED = "_compiled_call_impl"


class Generating:
    """``run`` is around each call of ``generate``."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.open: dict[int, tuple[int, Place]] = {}  # the call that runs, by thread
        self.timed: dict[Place, list[int]] = {}  # prefills, decodes, and the rest of ``Generation``

    def run(self, call: Callable[[], Any], model: Any, place: Optional[Place]) -> Any:
        """The result of ``call()``. A call of ``generate`` inside another one is part of it: a smaller model
        may draft tokens."""
        thread = threading.get_native_id()
        if place is None or thread in self.open:
            return call()
        began = time_ns()
        self.open[thread] = began, place
        passes = Passes(self.spans, thread, place)
        try:
            passes.watch(model)
            return call()
        finally:
            passes.close()
            self.spans.append((began, time_ns(), CALL, thread, place))
            del self.open[thread]

    def start_timing(self) -> None:
        self.spans.clear()

    def stop_timing(
        self, stamps: Sequence[int], left_out: Callable[[int, int], int] = lambda begin, end: 0
    ) -> None:
        """``stamps``: the boundaries of the timed steps, in ns. Later spans are of the capture.
        ``left_out()``: how much between two times does not count."""
        for begin, end, kind, _, place in self._spans():
            found = self.timed.setdefault(place, [0, 0, 0, 0, 0])
            if kind == CALL:
                begin, end = max(begin, stamps[0]), min(end, stamps[-1])
                found[4] += max(0, end - begin - left_out(begin, end))
            elif stamps[0] <= begin < stamps[-1]:
                found[0] += kind == PREFILL
                found[1] += kind == DECODE
                found[3 if kind == DECODE else 2] += end - begin - left_out(begin, end)
        self.spans.clear()

    def _spans(self) -> list[Span]:
        now = time_ns()
        running = [(began, now, CALL, thread, place) for thread, (began, place) in list(self.open.items())]
        return self.spans + running

    def found(self, stamps: Sequence[int]) -> list[Generation]:
        """One for each line. ``stamps``: the boundaries of the captured steps, in ns."""
        spans: dict[Place, list[tuple[int, int, int, int]]] = {place: [] for place in self.timed}
        for begin, end, kind, thread, place in self._spans() if len(stamps) > 1 else ():
            if end > stamps[0] and begin < stamps[-1]:
                spans.setdefault(place, []).append((begin, end, kind, thread))
        return [Generation(*place, tuple(its), *self.timed.get(place, ())) for place, its in spans.items()]


class Passes:
    """Notes the passes of one call in ``spans``."""

    def __init__(self, spans: list[Span], thread: int, place: Place) -> None:
        self.spans = spans
        self.of = thread, place
        self.ident = threading.get_ident()
        self.running: list[int] = []  # when the passes that run began: one may be within another
        self.next = PREFILL
        self.undo: list[Callable[[], Any]] = []

    def watch(self, model: Any) -> None:
        """Note each pass of ``model``, and of its encoder where that is called on its own."""
        try:
            self._watch(model, lambda: self.next)
            self._watch_compiled(model)
            if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
                self._watch(model.get_encoder(), lambda: ENCODER)
        except Exception:  # an unknown kind of model: its passes stay unknown
            self.leave()

    def close(self) -> None:
        """The call is over. With several threads on a compiled model, ours may be called even later."""
        self.leave()
        self.ident = 0

    def leave(self) -> None:
        """Take away what was put on the model."""
        while self.undo:
            self.undo.pop()()

    def _watch(self, module: Any, kind: Callable[[], int]) -> None:
        compiled = vars(module).get(COMPILED)
        if compiled is not None:  # a hook would be compiled in
            vars(module)[COMPILED] = self._around(compiled, kind)
            self.undo.append(lambda: vars(module).update({COMPILED: compiled}))
            return
        hooks = (
            module.register_forward_pre_hook(lambda module, arguments: self._begin()),
            module.register_forward_hook(lambda module, arguments, output: self._end(kind())),
        )
        self.undo += [hook.remove for hook in hooks]

    def _watch_compiled(self, model: Any) -> None:
        """transformers compiles the model's call by itself where its cache is static."""
        compile_call = getattr(model, "get_compiled_call", None)
        if compile_call is None:
            return

        def get_compiled_call(*arguments: Any, **named: Any) -> Any:
            compiled = compile_call(*arguments, **named)

            def called(*arguments: Any, **named: Any) -> Any:
                self.leave()  # hooks would be compiled in; from here on all passes are compiled
                return self._around(compiled, lambda: self.next)(*arguments, **named)

            return called

        vars(model)["get_compiled_call"] = get_compiled_call
        self.undo.append(lambda: vars(model).pop("get_compiled_call", None))

    def _around(self, original: Callable[..., Any], kind: Callable[[], int]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            self._begin()
            try:
                return original(*arguments, **named)
            finally:
                self._end(kind())

        return called

    def _begin(self) -> None:
        if threading.get_ident() == self.ident:
            self.running.append(time_ns())

    def _end(self, kind: int) -> None:
        if threading.get_ident() != self.ident or not self.running:
            return
        began = self.running.pop()
        if not self.running:
            self.spans.append((began, time_ns(), kind, *self.of))
            if kind == PREFILL:
                self.next = DECODE
