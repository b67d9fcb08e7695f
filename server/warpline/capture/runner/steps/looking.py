"""Times the iterations of the script's loops. Such a run records nothing else.

Each iteration ends with a synchronization: if the host only queued work, a loop of kernels would look short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import perf_counter_ns, thread_time_ns
from types import ModuleType
from typing import Any

from ....wire.loops import Loop
from ....wire.messages import Looked
from ..patches import Function, Patches
from . import compiling
from .choice import OFTEN, Turned, choose, steps_well
from .written import ITEMS, LEAVE, TURN, same

#: After ``MANY`` iterations that take less than ``QUICK_NS`` a loop is plain Python and is no longer timed.
#: An operator of torch takes longer on any device.
MANY, QUICK_NS = 1000, 2_000
#: Number of durations kept per loop: a script may make millions of iterations.
MOST = 100_000
CHECK_NS = 100_000_000  # least time between two attempts to choose


class Activation:
    """One run through a loop. ``again``: a recursive one, whose time the outer run already includes."""

    __slots__ = ("again", "began", "last", "number", "outer", "worked")

    def __init__(self, number: int, outer: Activation | None) -> None:
        self.number = number
        self.outer = outer
        self.began = perf_counter_ns()
        self.last: int | None = None  # when its latest turn began,
        self.worked = 0  # and the thread's processor time then
        self.again = False
        while outer is not None and not self.again:
            self.again, outer = outer.number == number, outer.outer


class Loops:
    def __init__(self, only: tuple[Loop, ...]) -> None:
        """``only``: the loops to watch; all of the user's where it is empty."""
        self.only = only
        self.seen: list[Turned] = []
        self.quick: set[int] = set()
        self.stack: list[Activation] = []
        self.thread = threading.get_ident()  # the script's first one
        self.counts = False  # True once torch is imported
        self.compiled = 0  # running calls of compiled code; loops in them cannot be steps
        self.synchronize: Callable[[], object] = lambda: None
        self.on_turn: Callable[[], object] = lambda: None
        self.began = self.checked = perf_counter_ns()

    def prepare(self, users: Callable[[str], bool]) -> None:
        """Before the script is compiled. ``users(path)``: whether that file is the user's."""
        files = {loop.file for loop in self.only}
        calls = {ITEMS: self._items, TURN: self._turn, LEAVE: self._leave}
        compiling.install(lambda path: path in files if files else users(path), self._number, True, calls)

    def start(self, torch: ModuleType, synchronize: Callable[[], object]) -> None:
        """Torch is imported: iterations count from now on."""
        Patches().replace(torch, "compile", self._without_compiling)
        capturing = torch.cuda.is_current_stream_capturing
        initialized = torch.cuda.is_initialized
        self.synchronize = lambda: None if initialized() and capturing() else synchronize()
        self.began = self.checked = perf_counter_ns()
        self.counts = True

    def stop(self) -> None:
        """Stop timing iterations: the script is being ended, or this is a forked child."""
        self.counts = False
        self.synchronize = self.on_turn = lambda: None

    def _number(self, loop: Loop) -> int | None:
        if self.only and not any(same(one, loop) for one in self.only if one.file == loop.file):
            return None
        self.seen.append(Turned(loop))
        return len(self.seen) - 1

    def _watched(self, number: int) -> bool:
        if not self.counts or self.compiled or number in self.quick:
            return False
        return threading.get_ident() == self.thread

    def _items(self, number: int, iterable: Iterable[Any]) -> Iterable[Any]:
        return self._each(number, iter(iterable)) if self._watched(number) else iterable

    def _each(self, number: int, iterator: Iterator[Any]) -> Iterator[Any]:
        here = self._enter(number)
        self.seen[number].runs += not here.again
        try:
            for item in iterator:
                self._turned(here)
                yield item
                if number in self.quick:
                    break
        finally:
            self._left(here)
        yield from iterator

    def _turn(self, number: int) -> bool:
        if self._watched(number):
            here = self.stack[-1] if self.stack else None
            if here is None or here.number != number:
                here = self._enter(number)
            self._turned(here)
        return True

    def _leave(self, number: int) -> None:
        if threading.get_ident() != self.thread:
            return
        for here in reversed(self.stack):
            if here.number == number:
                self._left(here)
                return

    def _enter(self, number: int) -> Activation:
        here = Activation(number, self.stack[-1] if self.stack else None)
        if self.only and not any(one.within or one.durations for one in self.seen) and not self.stack:
            self.began = here.began  # what was before is no step
        self.stack.append(here)
        return here

    def _turned(self, here: Activation) -> None:
        self.synchronize()
        now, worked = perf_counter_ns(), thread_time_ns()
        if here.last is not None and not here.again:
            turned = self.seen[here.number]
            durations = turned.durations
            if len(durations) == MOST:
                turned.more += 1
            else:
                durations.append(now - here.last)
                turned.processor_ns.append(worked - here.worked)
            if len(durations) == MANY and sum(durations) < MANY * QUICK_NS:
                self.quick.add(here.number)
        here.last, here.worked = now, worked
        if now - self.checked > CHECK_NS:
            self.checked = now
            self.on_turn()

    def _left(self, here: Activation) -> None:
        if here in self.stack:  # a generator may be left later than what is around it
            self.stack.remove(here)
        self._add(here, self.seen[here.number], perf_counter_ns())

    @staticmethod
    def _add(here: Activation, turned: Turned, now: int) -> None:
        if here.again:
            return
        outer = here.outer.number if here.outer is not None else None
        turned.total_ns += now - here.began
        turned.within[outer] = turned.within.get(outer, 0) + now - here.began

    def so_far(self) -> tuple[list[Turned], int]:
        """What was seen so far, unfinished loops included, and the time (ns) since ``start``."""
        now = perf_counter_ns()
        seen = [replace(one, within=dict(one.within)) for one in self.seen]
        for here in self.stack:
            self._add(here, seen[here.number], now)
        return seen, now - self.began

    def sure(self, window_ns: int, whole_ns: int, most_ns: int) -> bool:
        """Whether the choice can no longer change: an outermost loop qualifies (``steps_well``) and has taken
        half of the script's time ``whole_ns``. If that is unknown (0), it is enough that the loop qualifies,
        or that ``most_ns`` have passed."""
        seen, watched_ns = self.so_far()
        roots = [one for one in seen if None in one.within]
        if not whole_ns:
            done = watched_ns > most_ns and any(len(one.durations) >= OFTEN for one in seen)
            well = any(steps_well(one, window_ns) for one in roots)
            return done or (well and choose(seen, watched_ns, window_ns)[1] is not None)
        return any(2 * one.total_ns >= whole_ns and steps_well(one, window_ns) for one in roots)

    def found(self, window_ns: int, at_end: bool) -> Looked:
        """The chosen loop, the loops around it, and the three inside it with the most iterations."""
        seen, watched_ns = self.so_far()
        path, chosen = choose(seen, watched_ns, window_ns)
        if chosen is None:
            return Looked(watched_ns=watched_ns, at_end=at_end)
        inside = [one for one in seen if chosen in one.within and one.durations]
        inside.sort(key=lambda one: -one.within[chosen])
        return Looked(
            (seen[chosen].told(),),
            tuple(seen[number].told() for number in path[: path.index(chosen)]),
            tuple(one.told() for one in inside[:3]),
            watched_ns,
            at_end,
        )

    def _without_compiling(self, original: Function) -> Function:
        """A replacement for ``torch.compile`` that does not compile: our calls would be compiled in."""

        def compile(model: Any = None, **named: Any) -> Any:
            if model is None:
                return lambda function: compile(function, **named)
            return self._module(model) if hasattr(model, "forward") else self._plain(model)

        return compile

    def _module(self, model: Any) -> Any:
        """What ``torch.compile`` gives back: a module of its own with the model as its ``_orig_mod``."""
        try:
            from torch._dynamo.eval_frame import OptimizedModule

            return OptimizedModule(model, self._plain)
        except Exception:  # another version of torch constructs it differently
            model.forward = self._plain(model.forward)
            return model

    def _plain(self, function: Function) -> Function:
        import functools

        @functools.wraps(function)
        def plain(*arguments: Any, **others: Any) -> Any:
            self.compiled += 1
            try:
                return function(*arguments, **others)
            finally:
                self.compiled -= 1

        plain._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
        return plain
