"""Plain against changed: rounds of processes in turn, until the interval is narrow enough."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from statistics import fmean

from warpline.measure import interval, losses, timed
from warpline.measure.candidate import Candidate
from warpline.measure.interval import Interval
from warpline.measure.timed import Timed, Timer
from warpline.model.problem import Problem
from warpline.model.report import Measured
from warpline.model.run import Request

Report = Callable[[int, int, str], None]
"""``(done, total, message)``: processes run, processes expected."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a measurement has cost enough."""

    first: int = interval.FIRST  # rounds that decide how many there will be
    half_width: float = 0.02  # of the log ratio; or a fifth of the gain, where that is wider
    rounds: int = 16
    seconds: float = 300.0  # for all rounds; the round that is running is finished
    run_s: float = 120.0  # for one process: a candidate that hangs costs this
    plain_s: float | None = None  # for one of the plain script, where that is another


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one candidate. ``measured`` is None when it could not be timed."""

    candidate: Candidate
    baseline_step_ms: float
    step_ms: float | None
    measured: Measured | None
    kept: bool
    reason: str
    rounds: int


@dataclass(slots=True)
class Pairs:
    """The rounds of one candidate so far, the plain run of each beside the changed one."""

    candidate: Candidate
    plain: list[Timed] = field(default_factory=list)
    changed: list[Timed] = field(default_factory=list)
    baseline_ms: list[float] = field(default_factory=list)  # of every plain run, also beside a failure
    failure: str = ""
    seconds: float = 0.0  # the longest that one of its processes took, the import of torch left out
    plain_seconds: float = 0.0  # where processes were started side by side; the same of the plain script

    def log_ratios(self) -> list[float]:
        work = self.candidate.work
        return [
            math.log(work * plain.step_ms / changed.step_ms)
            for plain, changed in zip(self.plain, self.changed, strict=True)
        ]

    def needed(self, limits: Limits) -> int:
        ratios = self.log_ratios()
        if len(ratios) < limits.first or limits.first < 2:
            return limits.first  # one round has no spread that could ask for more
        wanted = max(limits.half_width, abs(fmean(ratios[: limits.first])) / 5)
        return min(limits.rounds, interval.rounds_needed(ratios, wanted, limits.first))


def measure(
    request: Request,
    candidate: Candidate,
    limits: Limits | None = None,
    *,
    timer: Timer | None = None,
    on_progress: Report | None = None,
    cancelled: threading.Event | None = None,
) -> Outcome:
    """Run plain and changed in turn and say what the change gains.

    Raises Problem when the plain script itself cannot be timed (status 1) or on cancel (130); what
    goes wrong with the changed one is its outcome.
    """
    limits, timer = limits or Limits(), timer or timed.Processes()
    report = on_progress or (lambda done, total, message: None)
    began = time.monotonic()
    # The first pair warms the file caches and finds what fails; the clock does not count it.
    report(0, 2 * limits.first + 2, "plain")
    warm = Pairs(candidate)
    play(request, [warm], (0,), limits=limits, timer=timer, cancelled=cancelled)
    pairs = Pairs(candidate, baseline_ms=warm.baseline_ms, failure=warm.failure)

    def more() -> bool:
        done, needed = len(pairs.changed), pairs.needed(limits)
        # Two rounds are the least that the clock may leave.
        if done >= needed or (time.monotonic() - began > limits.seconds and done >= 2):
            return False
        report(2 * done + 2, 2 * needed + 2, f"round {done + 1}")
        return True

    while not pairs.failure and more():
        numbers = range(len(pairs.changed), pairs.needed(limits))
        play(request, [pairs], numbers, limits=limits, timer=timer, cancelled=cancelled, after=more)
    return outcome(pairs, limits)


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

    All candidates have the same ``base``. One that failed is left out from then on. ``after`` is
    called behind each round; False ends it there.
    """
    together = max(1, timed.SIDE_BY_SIDE // (len(several) + 1))
    for first in range(0, len(numbers), together):
        group = numbers[first : first + together]
        rounds = [_turns(several, number) for number in group]
        processes = [(_overlay(several, turn), _limit(limits, turn)) for turns in rounds for turn in turns]
        with _started(timer, request, processes, cancelled):
            for turns in rounds:
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


def _round(
    request: Request,
    several: Sequence[Pairs],
    turns: Sequence[Pairs | None],
    limits: Limits,
    timer: Timer,
    cancelled: threading.Event | None,
) -> None:
    plain: Timed | None = None
    seen: list[tuple[Pairs, Timed]] = []
    failed: list[Pairs] = []
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
                failed.append(turn)
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
            for pairs in (*failed, *(pairs for pairs, _ in seen)):
                pairs.baseline_ms.append(plain.step_ms)
                pairs.plain_seconds = max(pairs.plain_seconds, plain_s)
            for pairs, changed in seen:
                pairs.plain.append(plain)
                pairs.changed.append(changed)


def _started(
    timer: Timer,
    request: Request,
    processes: Sequence[tuple[timed.Overlay, float]],
    cancelled: threading.Event | None,
) -> AbstractContextManager[None]:
    if isinstance(timer, timed.Processes):
        return timer.side_by_side(request, processes, cancelled)
    return nullcontext()


def outcome(pairs: Pairs, limits: Limits) -> Outcome:
    """The verdict on what was seen. A gain is one whose whole interval lies above 1."""
    candidate, rounds = pairs.candidate, len(pairs.changed)
    baseline = fmean(pairs.baseline_ms)
    if pairs.failure or not rounds:
        return Outcome(candidate, baseline, None, None, False, pairs.failure or "it was not timed", rounds)
    found = interval.of(pairs.log_ratios(), limits.first)
    moved = losses.drift(
        [run.losses for run in pairs.plain],
        [run.losses for run in pairs.changed],
        candidate.safe,
    )
    measured = Measured(found.speedup, found.low, found.high, moved.value, _memory(pairs))
    reason = _verdict(found, moved)
    step_ms = fmean(run.step_ms for run in pairs.changed) / candidate.work
    kept = found.low > 1.0 and moved.allowed
    return Outcome(candidate, baseline, step_ms, measured, kept, reason, rounds)


def _verdict(found: Interval, moved: losses.Drift) -> str:
    if not moved.allowed:
        return moved.reason
    if found.high < 1.0:
        return "slower"
    if found.low <= 1.0:
        return "no gain that can be told from noise"
    return moved.reason or "faster"


def _memory(pairs: Pairs) -> float | None:
    both = [
        (plain.peak_bytes, changed.peak_bytes)
        for plain, changed in zip(pairs.plain, pairs.changed, strict=True)
        if plain.peak_bytes and changed.peak_bytes
    ]
    return fmean(changed / plain for plain, changed in both) if both else None
