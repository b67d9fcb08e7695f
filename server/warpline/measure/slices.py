"""One plain process and, one after the other, the changed ones: each pair is timed in slices of its windows,
in turn, both alive and one of them standing still at any time.

The plain process is started once for all of them. What slows a machine down for seconds slows both of a pair
alike, and a pair is compared with nothing but its own slices.
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
"""A process to start: what is laid over the sources, and its limit in seconds."""
Keep = Callable[[int, Timed, Timed, float], None]
"""``(number of the changed one, plain, changed, seconds that it took)``."""


@dataclass(slots=True)
class Left:
    """Numbers of changed processes that could not be timed. Those that are neither kept nor here had no
    turn, as the plain script ended or the caller wanted no more."""

    beside: list[int] = field(default_factory=list)  # failed beside the plain one; alone they may work
    failed: dict[int, str] = field(default_factory=dict)  # and why: they would fail alone as well


@dataclass(slots=True)
class _Pair:
    """A changed process and the plain one's slices that it is compared with: from ``first`` on, ``made``."""

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
    """Time ``changed`` against one process of the plain script; ``keep`` hears of each that could be.

    ``starting`` is asked before each of them; False ends it there. On cancel (Problem with status 130, or
    KeyboardInterrupt) what has been timed by then is kept before the exception passes on.
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
            for held in (one, *(pair.other for pair in pairs)):  # all at once: each may take seconds to end
                held.give_up()
            raise
        finally:
            _deliver(timer, one, pairs, length, keep)


def _begun(one: BackgroundTiming) -> bool:
    """The plain process is behind its warm-up. What it failed with is seen when it runs by itself."""
    try:
        return one.slice()
    except Problem as problem:
        if problem.status == 130:
            raise
        return False


def _taken(one: BackgroundTiming, pair: _Pair, count: int, left: Left) -> bool:
    """Both take turns, up to ``count`` times each; whether that gave slices enough to compare."""
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
    """Hand over the slices of each pair that has enough of them."""
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
            continue  # a window was interrupted: it does not count
        begin = pair.first * length
        part = epochs.part(plain, begin, begin + pair.made * length)
        if len(part.steps_ns) < pair.made * length:
            continue
        seen = _compared(part, epochs.part(changed, 0, pair.made * length), length)
        timer.as_slow_as(max(one.step_ms for one in seen))
        keep(pair.number, *seen, pair.seconds)


def _compared(plain: Timing, changed: Timing, length: int) -> tuple[Timed, Timed]:
    """Batches of k workers may come k at a time: only many bursts together are like others."""
    steps = max(length, BURSTS * max(plain.workers, changed.workers))
    steps = -(-steps // length) * length
    return sliced(plain, steps), sliced(changed, steps)
