"""Runs rounds of processes: each round has the plain script once and each candidate once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeGuard

from warpline.measure import slices, timed
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.timed import Timed, Timer
from warpline.model.problem import Problem
from warpline.wire.run import Request


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings for all rounds of one call. ``starting`` is called before each process of a candidate; if it
    returns False, that process and the later ones are not run in this round."""

    request: Request
    limits: Limits
    timer: Timer
    cancelled: threading.Event | None = None
    starting: Callable[[Pairs], bool] = lambda pairs: True

    def limit_s(self, turn: Pairs | None) -> float:
        """Limit for a process in seconds; the plain script (``turn`` is None) has its own."""
        limits = self.limits
        return limits.run_s if turn is not None or limits.plain_s is None else limits.plain_s

    def check(self) -> None:
        """Raises Problem with status 130 after a cancel."""
        if self.cancelled is not None and self.cancelled.is_set():
            raise Problem("interrupted", 130)


def play(
    request: Request,
    several: Sequence[Pairs],
    numbers: Sequence[int],
    *,
    limits: Limits,
    timer: Timer,
    cancelled: threading.Event | None = None,
    after: Callable[[], bool] = lambda: True,
    starting: Callable[[Pairs], bool] = lambda pairs: True,
) -> None:
    """Run the rounds ``numbers``, each with the plain script once and each candidate once. The order
    alternates between rounds, so that a slow drift of the machine favours neither.

    If possible, the plain process and one candidate's process are alive at the same time and take turns in
    slices of their windows. All candidates have the same ``base``. A candidate that failed is not run again.
    ``after`` is called after each round; if it returns False, no more rounds are run.
    """
    setting = Setting(request, limits, timer, cancelled, starting)
    together = max(1, timed.SIDE_BY_SIDE // (len(several) + 1))
    for first in range(0, len(numbers), together):
        group = numbers[first : first + together]
        sliced = in_slices(timer, request)
        rounds = [_turns(several, 0 if sliced else number) for number in group]
        processes = [(_overlay(several, turn), setting.limit_s(turn)) for turns in rounds for turn in turns]
        with _started(timer, request, processes, cancelled, slices=sliced):
            for turns in rounds:
                _one_round(setting, several, turns)
                if not after() or all(pairs.failure for pairs in several):
                    return


def in_slices(timer: Timer, request: Request) -> TypeGuard[timed.Processes]:
    """Whether rounds are timed in slices. They are not with a launcher, whose ranks we cannot pause."""
    return isinstance(timer, timed.Processes) and timer.slice_steps is not None and not request.launcher


def _one_round(setting: Setting, several: Sequence[Pairs], turns: Sequence[Pairs | None]) -> None:
    left = [pairs for pairs in several if not pairs.failure]
    while left and in_slices(setting.timer, setting.request):
        kept, beside, ended = _shared(setting, left)
        left = [pairs for pairs in left if pairs not in kept and not pairs.failure]
        if ended:
            return
        if beside:
            # They failed while the plain script was alive, so try them alone.
            _each_alone(setting, [*beside, None], beside)
            left = [pairs for pairs in left if pairs not in beside]
            if any(not pairs.failure for pairs in beside):
                setting.timer.one_at_a_time()
        elif not kept:
            break
    if left:
        _each_alone(setting, [turn for turn in turns if turn is None or turn in left], left)


def _shared(setting: Setting, several: Sequence[Pairs]) -> tuple[list[Pairs], list[Pairs], bool]:
    """``(kept, failed while the plain script was alive, whether the caller ended the round)``."""
    timer = setting.timer
    assert isinstance(timer, timed.Processes)
    kept: list[Pairs] = []
    ended = False
    began, waited_s = time.monotonic(), 0.0

    def keep(number: int, plain: Timed, changed: Timed, seconds: float) -> None:
        pairs = several[number]
        kept.append(pairs)
        pairs.add(plain, changed, waited_s)
        pairs.seconds = max(pairs.seconds, seconds)

    def starting(number: int) -> bool:
        nonlocal ended, waited_s
        # Until the warm-ups of the plain script and of those that start beside it have ended.
        waited_s = waited_s or time.monotonic() - began
        ended = not setting.starting(several[number])
        return not ended

    plain = _overlay(several, None), setting.limit_s(None)
    changed = [(pairs.candidate.overlay, setting.limit_s(pairs)) for pairs in several]
    compiling = [number for number, pairs in enumerate(several) if pairs.candidate.compiles]
    left = slices.shared(timer, setting.request, plain, changed, setting.cancelled, keep, starting, compiling)
    for number, why in left.failed.items():
        several[number].failure = why
    return kept, [several[number] for number in left.beside], ended


def _each_alone(setting: Setting, turns: Sequence[Pairs | None], several: Sequence[Pairs]) -> None:
    """Run each process alone, in the order of ``turns``; None is the plain script."""
    plain: Timed | None = None
    seen: list[tuple[Pairs, Timed | None]] = []  # None: it failed
    plain_s = 0.0
    try:
        for turn in turns:
            if turn is not None and (turn.failure or not setting.starting(turn)):
                continue
            setting.check()
            if turn is None and seen and all(changed is None for _, changed in seen):
                continue  # no plain run to compare it with
            began = time.monotonic()
            overlay = _overlay(several, turn)
            try:
                found = setting.timer(setting.request, overlay, setting.limit_s(turn), setting.cancelled)
            except Problem as problem:
                if turn is not None:
                    turn.seconds = max(turn.seconds, time.monotonic() - began)
                if turn is None or problem.status == 130:
                    raise
                setting.check()
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
        # Timings with a plain run count, even if the round was interrupted.
        if plain is not None:
            for pairs, changed in seen:
                pairs.add(plain, changed, plain_s)


def _turns(several: Sequence[Pairs], number: int) -> list[Pairs | None]:
    turns: list[Pairs | None] = [None, *several]
    return turns[::-1] if number % 2 else turns


def _overlay(several: Sequence[Pairs], turn: Pairs | None) -> Mapping[str, str]:
    return several[0].candidate.base if turn is None else turn.candidate.overlay


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
