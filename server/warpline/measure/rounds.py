"""Rounds of processes: the plain script and each candidate, in turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeGuard

from warpline.measure import timed
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.timed import Timed, Timer
from warpline.model.problem import Problem
from warpline.wire.run import Request


def play(
    request: Request,
    several: Sequence[Pairs],
    numbers: Sequence[int],
    *,
    limits: Limits,
    timer: Timer,
    cancelled: threading.Event | None = None,
    after: Callable[[], bool] = lambda: True,
) -> None:
    """Rounds ``numbers``. A round is the plain script once and each candidate once; every other round
    goes the other way round, so that a machine that slowly warms up or fills favours neither.

    Where there is only one, plain and changed are both alive and take turns in slices of their windows, as
    long as that works. All candidates have the same ``base``. One that failed is left out from then on.
    ``after`` is called behind each round; False ends it there.
    """
    together = max(1, timed.SIDE_BY_SIDE // (len(several) + 1))
    for first in range(0, len(numbers), together):
        group = numbers[first : first + together]
        rounds = [_turns(several, number) for number in group]
        processes = [(_overlay(several, turn), _limit(limits, turn)) for turns in rounds for turn in turns]
        # A launcher's ranks are not ours to stop: they wait for each other.
        sliced = timer if len(several) == 1 and not request.launcher and _in_slices(timer) else None
        with _started(timer, request, processes, cancelled, slices=sliced is not None):
            for turns in rounds:
                if sliced is None or not _sliced(request, several[0], turns, limits, sliced, cancelled):
                    _round(request, several, turns, limits, timer, cancelled)
                if not after() or all(pairs.failure for pairs in several):
                    return


def _turns(several: Sequence[Pairs], number: int) -> list[Pairs | None]:
    turns: list[Pairs | None] = [None, *several]
    return turns[::-1] if number % 2 else turns


def _overlay(several: Sequence[Pairs], turn: Pairs | None) -> Mapping[str, str]:
    return several[0].candidate.base if turn is None else turn.candidate.overlay


def _limit(limits: Limits, turn: Pairs | None) -> float:
    return limits.run_s if turn is not None or limits.plain_s is None else limits.plain_s


def _in_slices(timer: Timer) -> TypeGuard[timed.Processes]:
    return isinstance(timer, timed.Processes) and timer.slice_steps is not None


def _sliced(
    request: Request,
    pairs: Pairs,
    turns: Sequence[Pairs | None],
    limits: Limits,
    timer: timed.Processes,
    cancelled: threading.Event | None,
) -> bool:
    """One round, in slices; False where that could not be done."""
    began = time.monotonic()
    processes = [(_overlay([pairs], turn), _limit(limits, turn)) for turn in turns]
    found = timer.in_slices(request, processes, cancelled)
    if found is None:
        return False
    plain, changed = found if turns[0] is None else found[::-1]
    seconds = (time.monotonic() - began) / 2
    pairs.add(plain, changed, seconds)
    pairs.seconds = max(pairs.seconds, seconds)
    return True


def _round(
    request: Request,
    several: Sequence[Pairs],
    turns: Sequence[Pairs | None],
    limits: Limits,
    timer: Timer,
    cancelled: threading.Event | None,
) -> None:
    plain: Timed | None = None
    seen: list[tuple[Pairs, Timed | None]] = []  # None: it failed
    plain_s = 0.0
    try:
        for turn in turns:
            if cancelled is not None and cancelled.is_set():
                raise Problem("interrupted", 130)
            if turn is not None and turn.failure:
                continue
            began = time.monotonic()
            try:
                found = timer(request, _overlay(several, turn), _limit(limits, turn), cancelled)
            except Problem as problem:
                if turn is not None:
                    turn.seconds = max(turn.seconds, time.monotonic() - began)
                ended = problem.status == 130 or (cancelled is not None and cancelled.is_set())
                if turn is None or ended:
                    raise
                turn.failure = str(problem)
                seen.append((turn, None))
                continue
            seconds = time.monotonic() - began
            if turn is None:
                plain, plain_s = found, seconds
            else:
                seen.append((turn, found))
                turn.seconds = max(turn.seconds, seconds)
    finally:
        # Of a round that was cut off too: what was timed beside the plain script counts.
        if plain is not None:
            for pairs, changed in seen:
                pairs.add(plain, changed, plain_s)


def _started(
    timer: Timer,
    request: Request,
    processes: Sequence[tuple[timed.Overlay, float]],
    cancelled: threading.Event | None,
    *,
    slices: bool,
) -> AbstractContextManager[None]:
    if isinstance(timer, timed.Processes):
        return timer.side_by_side(request, processes, cancelled, slices=slices)
    return nullcontext()
