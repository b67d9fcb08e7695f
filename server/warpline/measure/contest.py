"""Plain against changed: rounds of processes in turn, until the interval is narrow enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from warpline.measure import interval, losses, timed
from warpline.measure.candidate import Candidate
from warpline.measure.interval import Interval
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.rounds import play
from warpline.measure.timed import Timer
from warpline.model.report import Measured
from warpline.wire.run import Request

Report = Callable[[int, int, str], None]
"""``(done, total, message)``: processes run, processes expected."""


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
