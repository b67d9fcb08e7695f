"""Chooses the source that defines the steps: several optimizers make one step, not many."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .forwards import CompiledForwards, Forwards
from .numbers import FORGOTTEN
from .sources import (
    RANK,
    Backwards,
    Loaders,
    Marks,
    Optimizers,
    ProfilerSteps,
    Replays,
    Source,
    unheard,
)

if TYPE_CHECKING:
    from ....wire.loops import Loop
    from ..observers import Observers
    from .nested import Nested
    from .turned import LoopTurns

#: Seconds during which batches and forwards are not taken for steps, because an optimizer exists that has
#: made no step yet: after a backward pass (gradients are being accumulated), and before one (first the model
#: acts, or is validated).
PATIENCE_S = 30.0
PATIENCE_BEFORE_BACKWARD_S = 10.0
#: The same while the model is being evaluated: a script with an optimizer is going to train.
PATIENCE_EVALUATED_S = 60.0
#: A key that is not among FORGOTTEN signals is dropped from the cycle. The same where keys come back after
#: that: so many optimizers may step in turn (each weight has one).
#: Chosen: more than large models have tensors.
LATEST_FORGOTTEN = 4096

PARALLEL = (
    "several threads made steps at the same time: the steps of one thread are shown, and the others slowed "
    "them"
)


class Steps:
    """Chooses the beat (the source of signals that marks the steps); calls ``on_step()`` at each step's end.

    The choice is made when one source has sent the same signal twice. All signals in between belong to one
    step, so the source with the highest ``RANK`` among them is taken. If one of higher rank is heard later,
    it replaces the beat: ``on_restart()`` is called, which returns False if it is too late for that.

    ``expected()``: for how many seconds to wait for an optimizer's first step; 0: there is none to wait for.
    Meanwhile neither a batch nor a forward is a step.

    Calls during the capture of a CUDA graph are not steps: they run when the graph is replayed. Nor does a
    step end inside a backward pass, in a gradient's hook or in a function's own ``backward``: the process
    dies of SIGSEGV if torch's profiler is stopped there.

    ``known``: the kind of the beat in an earlier run. It is chosen with its first signal.

    Only one thread makes steps: the first in which the beat is heard. If it ends or sends no more signals,
    the next thread takes its place. If an optimizer moves from thread to thread, or threads end one after the
    other (a server with a thread for each request), all these threads count.
    """

    def __init__(
        self,
        on_restart: Callable[..., bool],
        observers: Observers,
        expected: Callable[[], float],
        known: str | None = None,
        turns: LoopTurns | None = None,
    ) -> None:
        """``turns``: the loop with iterations that are the steps; then other signals are ignored."""
        self.on_step: Callable[[], object] = unheard
        #: Called once, before the first batch or the first forward, whichever comes first.
        self.on_first: Callable[[], object] | None = None
        self.on_restart = on_restart
        self.expected = expected
        self.sources: list[Source] = [Forwards(), Loaders(observers), Backwards(observers)]
        self.signals = observers.signals
        self.marks = Marks()
        self.sources += [Optimizers(observers), Replays(), self.marks, ProfilerSteps()]
        if turns is not None:
            self.sources, known = [turns], turns.kind
        self.nested: Nested | None = None  # looks at forwards and gradients until steps are timed
        self.installed: list[Source] = []
        self.cycles: dict[str, Cycle] = {}  # by kind
        self.chosen: str | None = None
        self.known = known
        self.thread: int | None = None
        self.owner: Any = None  # its Thread: a later one gets the number of one that has ended
        self.elsewhere = 0  # signals from other threads since the last from this one
        self.stepping = threading.Lock()  # held while ``on_step`` runs; it may begin the next window
        self.parallel = False  # other threads made steps while this one did
        self.moves = False  # the steps of one loop are made by several threads
        self.successors = 0  # threads that went on where one had ended
        self.holding_since: float | None = None
        self.held = 0
        self.held_s = 0.0  # how long they were held back, if an optimizer made steps afterwards
        self.torch: Any = None
        self.step_in_graph = False  # a captured CUDA graph contains an optimizer's step
        self.listening = False  # to all sources again, because the beat fell silent

    @property
    def anchor(self) -> int | None:
        """The key that is the beat; None before there is one."""
        return self.cycles[self.chosen].anchor if self.chosen is not None else None

    def heard_of_anchor(self) -> int:
        """Number of signals with the anchor; 0 before there is a beat."""
        if self.chosen is None or self.anchor is None:
            return 0
        return self.cycles[self.chosen].counts[self.anchor]

    def install(self, torch: ModuleType) -> None:
        """Listen to every source of steps that may still be chosen."""
        self.torch = torch
        for source in self.sources:
            if self.chosen is None or RANK[source.kind] >= RANK[self.chosen]:
                source.install(torch, self.heard)
                self.installed.append(source)

    def compiling(self) -> None:
        """The script compiles a model: replace the global forward hook, which would be compiled in."""
        for at, source in enumerate(self.sources):
            if not isinstance(source, Forwards):
                continue
            self.sources[at] = compiled = CompiledForwards(source.numbers)
            if source in self.installed:
                self._remove(source)
                compiled.install(self.torch, self.heard)
                self.installed.append(compiled)

    def quiet(self) -> None:
        """Reduce the sources before timing: the beat calls only ``tick``, the others are removed. Backward
        passes and optimizers stay if they outrank the beat, because a model may first act and then train."""
        for source in list(self.installed):
            trains = isinstance(source, (Backwards, Optimizers))
            if trains and self.chosen is not None and RANK[self.chosen] < RANK[source.kind]:
                continue
            self._remove(source)
            if source.kind == self.chosen:
                source.install_tick(self.torch, self.anchor, self)
                self.installed.append(source)

    def listen(self) -> None:
        """The beat has been silent for long: hear all sources again, as another one may mark the steps now.
        Called where a signal interrupts the script, so not while a step is being handled."""
        if self.installed and self.chosen is not None and not (self.inside or self.listening):
            self.listening = True
            self.remove()
            self.install(self.torch)

    def _heard_again(self) -> None:
        """The beat is heard, and the window goes on."""
        if self.listening:
            self.listening = False
            self.quiet()

    def go_on(self) -> None:
        """Listen to the beat again, and to nothing else. Called after ``remove``."""
        if self.chosen == "backward":
            self.signals.install(self.torch)
        for source in [source for source in self.sources if source.kind == self.chosen]:
            source.install_tick(self.torch, self.anchor, self)
            self.installed.append(source)

    @property
    def single(self) -> str | None:
        """The kind of the beat if only one key of that kind was heard; else None."""
        if self.chosen is None or self.chosen == "replay" or len(self.cycles[self.chosen].counts) != 1:
            return None
        return self.chosen

    @property
    def note(self) -> str:
        """A note for the report if several threads made steps at once, else empty."""
        return PARALLEL if self.parallel else ""

    def in_loops(self) -> tuple[Loop, ...]:
        """The user's loops around the beat, if it is a forward or a call of ``autograd.grad`` and there are
        at least two such loops. Then an iteration of an outer loop may be what the user calls a step: a
        Markov chain may take several gradients for each sample."""
        derives = self.chosen == "backward" and not self.signals.filled and "loader" not in self.cycles
        if self.nested is None or not (derives or self.chosen == "forward"):
            return ()
        return self.nested.found

    def tick(self) -> None:
        """The chosen source reached a step boundary. Signals from other threads, inside a backward
        pass, or while a CUDA graph is captured, do not count."""
        if self._in_backward():
            return
        if not (self._is_here() or self._follows(self.chosen, self.anchor) or self._moved()):
            return
        if not self._graph_is_captured():
            self._step()
        self.elsewhere = 0

    def _step(self) -> None:
        """A step boundary on the chosen thread. No other thread is chosen, and none makes a step, meanwhile:
        a window may take long to begin."""
        if self.stepping.acquire(blocking=False):
            try:
                self.on_step()  # looked up again: each window has its own
            finally:
                self.stepping.release()

    @property
    def inside(self) -> bool:
        """Whether a step is being handled."""
        return self.stepping.locked()

    def unknown(self) -> None:
        """An optimizer that was not part of the cycle made a step: listen to all sources again. Not if
        it belongs to another thread, which makes steps of its own, or steps inside a backward pass."""
        if not self._in_backward() and (self._is_here() or self._moved()) and self.on_restart():
            self.remove()
            self.install(self.torch)

    def remove(self) -> None:
        """Stop listening."""
        for source in list(self.installed):
            self._remove(source)

    def heard(self, kind: str, key: int) -> None:
        """Handle a signal: count it, and choose the best source once a signal has come twice."""
        if self._in_backward():
            return
        if self.thread is None:
            self._follow()
        elif not (self._is_here() or self._follows(kind, key) or self._moved()):
            return
        self.elsewhere = 0
        if self._graph_is_captured():
            self.step_in_graph |= kind == "optimizer"
            return
        if kind == "replay" and not self.step_in_graph:
            return
        if self.nested is not None and kind in ("forward", "backward"):
            self.nested.look()
        if self.on_first is not None and kind in ("loader", "forward"):
            on_first, self.on_first = self.on_first, None
            on_first()
        cycle = self.cycles.get(kind)
        if cycle is None:
            cycle = self.cycles[kind] = Cycle()
        before = cycle.anchor
        cycle.heard(key)
        if self.chosen is None:
            if cycle.counts[key] < 2 and kind != self.known:
                return
            if self.known in RANK and RANK[kind] < RANK[self.known]:
                return
            self._choose(max(self.cycles, key=RANK.__getitem__))
        elif RANK[kind] > RANK[self.chosen]:
            self._choose(kind)
        elif kind == self.chosen and before not in (None, cycle.anchor) and self.on_restart():
            self.listening = False
        if kind == self.chosen and key == cycle.anchor and not self._held(kind):
            self._heard_again()
            self._step()

    def _follows(self, kind: str | None, key: int | None) -> bool:
        """Whether this is a step of the same loop on another thread: a known optimizer's, as if an executor
        runs the loop, or the beat where each step has a thread. Signals from all threads count from then on:
        the thread of a request may still send its answer when the next one's makes a step."""
        known = self.cycles.get("optimizer")
        stepped = kind == "optimizer" and known is not None and key in known.counts
        goes_on = self.moves and kind == self.chosen and key == self.anchor
        if self.inside or not (stepped or goes_on):
            return False
        self.moves, self.parallel = True, False  # earlier signals of this thread are of the same loop
        self._follow()
        return True

    def _moved(self) -> bool:
        """Another thread made a step: whether to follow that thread from now on."""
        self.elsewhere += 1
        found = _thread(self.thread)
        if found is None or found is not self.owner:  # it has ended
            self.successors += 1
            if self.successors > 1:  # a thread for each request
                self.moves, self.parallel, self.signals.overlap = True, False, True
            self._follow()
            return True
        self.parallel = self.parallel or not self.moves
        if self.inside or self.elsewhere <= FORGOTTEN or not self.on_restart():
            return False
        self._follow()
        return True

    def _is_here(self) -> bool:
        """Whether this is the thread that makes the steps."""
        here = threading.get_ident()
        return self.thread == here and self.owner is _thread(here)

    def _follow(self) -> None:
        """This thread makes the steps from now on, as others may where they move."""
        self.thread = threading.get_ident()
        self.signals.thread = None if self.moves else self.thread
        self.owner = _thread(self.thread)

    def _in_backward(self) -> bool:
        return bool(self.torch._C._current_graph_task_id() != -1)

    def _graph_is_captured(self) -> bool:
        cuda = self.torch.cuda
        return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())

    def _held(self, kind: str) -> bool:
        patience = self.expected() if RANK[kind] < RANK["optimizer"] else 0
        if not patience:
            return False
        self.holding_since = self.holding_since or monotonic()
        held = monotonic() - self.holding_since < patience
        self.held += held
        return held

    def _choose(self, kind: str) -> None:
        if self.chosen is not None:
            self.on_restart(better=True)
        self.chosen = kind
        if RANK[kind] >= RANK["optimizer"]:
            self.held = 0
            if self.holding_since is not None:
                self.held_s = monotonic() - self.holding_since
                self.holding_since = None
        for source in [source for source in self.installed if RANK[source.kind] < RANK[kind]]:
            self._remove(source)

    def _remove(self, source: Source) -> None:
        source.remove()
        self.installed.remove(source)


def _thread(number: int | None) -> Any:
    """The living Thread with that number; None for one that Python has not begun."""
    return threading._active.get(number)  # type: ignore[attr-defined]


class Cycle:
    """The keys of one source's signals; ``anchor`` is the key that marks the step.

    That is the rarest key (a generator may step once for five steps of its critic). If several are equally
    rare, it is the one that comes last in the cycle.
    """

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        #: Key -> number of the signal at which it was last heard; in that order
        self.last: dict[int, int] = {}
        self.signals = 0
        self.anchor: int | None = None
        self.forgotten = FORGOTTEN  # for so many signals a key may not be heard
        self._dropped: set[int] = set()

    def heard(self, key: int) -> None:
        """Count one signal and update the anchor. Keys not heard for ``FORGOTTEN`` signals are dropped; for
        twice as many from when one came back."""
        self.signals += 1
        if key in self._dropped:
            self.forgotten = min(2 * self.forgotten, LATEST_FORGOTTEN)
            self._dropped.clear()
        self.counts[key] = self.counts.get(key, 0) + 1
        self.last.pop(key, None)
        self.last[key] = self.signals
        if len(self.counts) == 1:
            self.anchor = key
            return
        # This runs in timed steps, once for each optimizer: no key is looked at that need not be.
        while self.signals - self.last[(gone := next(iter(self.last)))] > self.forgotten:
            del self.counts[gone], self.last[gone]
            if self.forgotten < LATEST_FORGOTTEN:
                self._dropped.add(gone)
        least = min(self.counts.values())
        self.anchor = next(other for other in reversed(self.last) if self.counts[other] == least)
