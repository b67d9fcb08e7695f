"""Times one plain process against several changed ones, one after the other, in slices.

Both processes of a pair are alive. They run slices of their timing windows in turn, while the other one is
paused. The plain process is started once for all pairs. A disturbance of seconds slows both processes of a
pair alike, and each pair is compared by its own slices only.

With many cores several processes run up to their first slice at the same time, before the first of them is
timed, also those of the next round (:class:`_Warmups`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from warpline.capture import room, signals
from warpline.capture.process import StillCompiling
from warpline.measure import epochs
from warpline.measure.background import BackgroundTiming
from warpline.measure.timed import BURSTS, BUSY_S, FEWEST, Overlay, Processes, Timed, sliced
from warpline.model.problem import Problem
from warpline.wire.run import Request
from warpline.wire.timing import Timing

Process = tuple[Overlay, float]
"""A process to start: the changed texts (overlay), and its limit in seconds."""
Keep = Callable[[int, Timed, Timed, float], None]
"""``(number of the changed process, plain, changed, seconds that it took)``."""


@dataclass(slots=True)
class Left:
    """Numbers of the changed processes that could not be timed. Processes that are neither kept nor here had
    no turn, because the plain script ended or the caller stopped."""

    beside: list[int] = field(default_factory=list)  # failed while the plain one was alive; may work alone
    failed: dict[int, str] = field(default_factory=dict)  # number -> reason: these would fail alone as well


@dataclass(slots=True)
class _Pair:
    """A changed process, and the ``made`` slices of the plain one, from ``first`` on, that it is compared
    with. ``warm``: it already waits for its first slice."""

    number: int
    other: BackgroundTiming
    first: int
    warm: bool
    made: int = 0
    plain_made: int = 0
    seconds: float = 0.0


class _Warmups:
    """Starts processes and lets them run up to their first slice, several at a time where there are the cores
    and the memory for it.

    One that compiles does so in its own turn, since it needs all cores. So does one that failed beside others
    (the device may have no memory for so many): it is started again when only the plain one is alive.
    """

    def __init__(
        self,
        timer: Processes,
        start: Callable[[Process], BackgroundTiming],
        changed: Sequence[Process],
        alone: Iterable[int],
    ) -> None:
        self.timer, self.start, self.changed = timer, start, changed
        self.waiting: dict[int, BackgroundTiming] = {}  # those at their first slice
        self.alone = set(alone)  # no longer started beside others

    def begun(self, one: BackgroundTiming) -> bool:
        """Whether the plain process gets to its first slice. Once its memory is known from an earlier one,
        the first changed processes start beside it, and where all of them do, those of the next round."""
        known, most = self.timer.bytes, self.timer.warm_together
        several = self._started(self._next(0, most - 1, known) if known else [])
        later: list[BackgroundTiming] = []
        if known and not one.warm and len(several) == len(self.changed):
            beside = 1 + len(several)
            later = self.timer.ahead(min(most, room.for_more(known)) - beside)
        begun = self._run([one], several, later)[0]
        if begun and one.group is not None:
            self.timer.bytes = max(known, room.held(one.group))
        return begun

    def following(self, turns: Sequence[int]) -> int:
        """The number in ``turns`` that comes next. Those at their first slice come before the others, which
        may need their memory."""
        if not self.waiting and turns[0] not in self.alone:
            several = self._next(turns[0], self.timer.warm_together, self.timer.bytes)
            if len(several) > 1:
                self._run([], self._started(several))
        return next((number for number in turns if number in self.waiting), turns[0])

    def _next(self, number: int, count: int, each: int) -> list[int]:
        """Up to ``count`` processes that may start together, from ``number`` on."""
        count = min(count, room.for_more(each))
        return [at for at in range(number, len(self.changed)) if at not in self.alone][: max(0, count)]

    def _started(self, several: Sequence[int]) -> dict[int, BackgroundTiming]:
        self.alone.update(several)  # once is enough
        return {at: self.start(self.changed[at]) for at in several}

    def _run(
        self,
        first: Sequence[BackgroundTiming],
        several: Mapping[int, BackgroundTiming],
        later: Sequence[BackgroundTiming] = (),
    ) -> list[bool]:
        """Run ``first``, the changed processes ``several`` and those of ``later`` rounds up to their first
        slices; which of ``first`` got there. Raises Problem with status 130 on cancel."""
        every = [*first, *several.values(), *later]
        with ThreadPoolExecutor(len(every), "warpline-warmup") as pool:
            try:
                got = list(pool.map(_begun, every))
            except BaseException:
                for one in every:  # else the threads would go on waiting for them
                    one.give_up()
                raise
        for (at, one), begun in zip(several.items(), got[len(first) :], strict=False):
            if begun:
                self.waiting[at] = one
            else:
                one.give_up()
        enough = all(got[: len(first) + len(several)])
        for one in later:
            if not enough or not one.warm:  # they may have taken what this round needs
                self.timer.drop(one)
        return got[: len(first)]


def shared(
    timer: Processes,
    request: Request,
    plain: Process,
    changed: Sequence[Process],
    cancelled: threading.Event | None,
    keep: Keep,
    starting: Callable[[int], bool] = lambda number: True,
    compiling: Iterable[int] = (),
) -> Left:
    """Time ``changed`` against one process of the plain script; ``keep`` is called for each one that was
    timed.

    ``starting`` is called before each of them; False ends the call. ``compiling``: numbers of those that
    compile. On cancel (Problem with status 130, or KeyboardInterrupt) ``keep`` is called for the pairs timed
    so far, before the exception is raised again.
    """
    left, pairs = Left(), list[_Pair]()
    length = timer.slice_steps or 1
    with ExitStack() as stack:
        stack.enter_context(signals.end_like_interrupt())
        alive: list[BackgroundTiming] = []

        def start(process: Process) -> BackgroundTiming:
            overlay, limit_s = process
            held = timer.started(overlay, slices=True)
            held = held or stack.enter_context(timer.hold(request, overlay, limit_s, cancelled, slices=True))
            alive.append(held)
            return held

        one, warmups = start(plain), _Warmups(timer, start, changed, compiling)
        try:
            if not warmups.begun(one):
                if one.failed:
                    timer.one_at_a_time()
                else:
                    timer.whole_windows()
                return left
            first, turns = 0, list(range(len(changed)))
            while turns:
                number = warmups.following(turns)
                turns.remove(number)
                if not starting(number):
                    return left
                waiting = warmups.waiting.pop(number, None)
                if waiting is None and not room.for_another(one.group):
                    timer.one_at_a_time()
                    return left
                began = time.monotonic()
                pair = _Pair(number, waiting or start(changed[number]), first, waiting is not None)
                pairs.append(pair)
                if not _taken(one, pair, timer.slices, Left() if pair.warm else left):
                    pairs.pop()
                    if pair.warm and not one.over:
                        turns.append(number)  # with only the plain one alive
                pair.seconds = time.monotonic() - began
                first += pair.plain_made
                if one.over:
                    if not pairs:
                        timer.whole_windows()
                    return left
            return left
        except BaseException:
            for held in alive:  # in parallel: each may take seconds to end
                held.give_up()
            raise
        finally:
            for held in warmups.waiting.values():
                held.give_up()
            _deliver(timer, one, pairs, length, keep)


def _begun(one: BackgroundTiming) -> bool:
    """Run it up to its first slice; whether it got there. An error is reported when it runs alone."""
    try:
        return one.warm or one.slice()
    except Problem as problem:
        if problem.status == 130:
            raise
        return False


def _taken(one: BackgroundTiming, pair: _Pair, count: int, left: Left) -> bool:
    """Run slices of both in turn, up to ``count`` each; whether there are enough of them to compare."""
    other = pair.other
    try:
        if not other.warm and not other.slice():
            raise Problem("the script ended before its first slice", 1)
        began = time.monotonic()
        while pair.made < count and (pair.made < FEWEST or time.monotonic() < began + BUSY_S):
            for held in (one, other)[:: -1 if pair.made % 2 else 1]:
                if not held.slice():
                    break
                pair.plain_made += held is one
            else:
                pair.made += 1
                continue
            break  # one of the scripts has no more steps
        if not one.over:
            other.end()
    except Problem as problem:
        if problem.status == 130:
            raise
        if isinstance(problem, StillCompiling):
            left.failed[pair.number] = str(problem)
        elif not one.over:
            left.beside.append(pair.number)
        return False
    finally:
        if one.over or pair.made < FEWEST:
            other.give_up()
    if pair.made < FEWEST and not one.over:
        left.beside.append(pair.number)
    return pair.made >= FEWEST


def _deliver(
    timer: Processes, one: BackgroundTiming, pairs: Sequence[_Pair], length: int, keep: Keep
) -> None:
    """Call ``keep`` for each pair with enough slices."""
    enough = [pair for pair in pairs if pair.made >= FEWEST]
    if not enough:
        one.give_up()
        return
    try:
        plain = one.cut_off() if one.given_up else one.end()
    except Problem:
        return
    if plain is None:
        return
    for pair in enough:
        changed = pair.other.cut_off()
        if changed is None or len(changed.steps_ns) < pair.made * length:
            continue  # an interrupted window does not count
        begin = pair.first * length
        part = epochs.part(plain, begin, begin + pair.made * length)
        if len(part.steps_ns) < pair.made * length:
            continue
        seen = _compared(part, epochs.part(changed, 0, pair.made * length), length)
        timer.as_slow_as(max(one.step_ms for one in seen))
        keep(pair.number, *seen, pair.seconds)


def _compared(plain: Timing, changed: Timing, length: int) -> tuple[Timed, Timed]:
    """The timings of both in slices. k workers may deliver k batches at a time, so slices are joined until
    each has several such bursts."""
    steps = max(length, BURSTS * max(plain.workers, changed.workers))
    steps = -(-steps // length) * length
    return sliced(plain, steps), sliced(changed, steps)
