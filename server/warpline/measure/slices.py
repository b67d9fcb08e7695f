"""Times one plain process against several changed ones, one after the other, in slices.

Both processes of a pair are alive. They run slices of their timing windows in turn, while the other one is
paused. The plain process is started once for all pairs. A disturbance of seconds slows both processes of a
pair alike, and each pair is compared by its own slices only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
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
    with."""

    number: int
    other: BackgroundTiming
    first: int
    made: int = 0
    plain_made: int = 0
    seconds: float = 0.0


def shared(
    timer: Processes,
    request: Request,
    plain: Process,
    changed: Sequence[Process],
    cancelled: threading.Event | None,
    keep: Keep,
    starting: Callable[[int], bool] = lambda number: True,
) -> Left:
    """Time ``changed`` against one process of the plain script; ``keep`` is called for each one that was
    timed.

    ``starting`` is called before each of them; False ends the call. On cancel (Problem with status 130, or
    KeyboardInterrupt) ``keep`` is called for the pairs timed so far, before the exception is raised again.
    """
    left, pairs = Left(), list[_Pair]()
    length = timer.slice_steps or 1
    with ExitStack() as stack:
        stack.enter_context(signals.end_like_interrupt())

        def start(process: Process) -> BackgroundTiming:
            overlay, limit_s = process
            held = timer.started(overlay, slices=True)
            return held or stack.enter_context(timer.hold(request, overlay, limit_s, cancelled, slices=True))

        one = start(plain)
        try:
            if not _begun(one):
                if one.failed:
                    timer.one_at_a_time()
                else:
                    timer.whole_windows()
                return left
            first = 0
            for number, process in enumerate(changed):
                if not starting(number):
                    return left
                if not room.for_another(one.group):
                    timer.one_at_a_time()
                    return left
                began = time.monotonic()
                pair = _Pair(number, start(process), first)
                pairs.append(pair)
                if not _taken(one, pair, timer.slices, left):
                    pairs.pop()
                pair.seconds = time.monotonic() - began
                first += pair.plain_made
                if one.over:
                    if not pairs:
                        timer.whole_windows()
                    return left
            return left
        except BaseException:
            for held in (one, *(pair.other for pair in pairs)):  # in parallel: each may take seconds to end
                held.give_up()
            raise
        finally:
            _deliver(timer, one, pairs, length, keep)


def _begun(one: BackgroundTiming) -> bool:
    """Whether the plain process has ended its warm-up. An error is reported when it runs alone."""
    try:
        return one.slice()
    except Problem as problem:
        if problem.status == 130:
            raise
        return False


def _taken(one: BackgroundTiming, pair: _Pair, count: int, left: Left) -> bool:
    """Run slices of both in turn, up to ``count`` each; whether there are enough of them to compare."""
    other = pair.other
    try:
        if not other.slice():
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
