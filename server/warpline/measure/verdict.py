"""The verdict on a candidate, from its rounds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from warpline.measure import interval, losses
from warpline.measure.candidate import Candidate
from warpline.measure.interval import Interval
from warpline.measure.pairs import Limits, Pairs
from warpline.model import units
from warpline.model.report import Measured

#: A peak of resident memory below this share of the plain one counts as less memory. Two processes of one
#: script differ by a few percent.
LIGHTER = 0.9
#: A gain from here on counts as "as fast": the margin is twice the half-width of the intended interval.
AS_FAST = 0.96
NOT_TIMED = "the time budget ended before it was timed"
ONCE = "timed in only 1 round, which is not enough"
UNPROVEN = "the time budget ended before it was proven"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one candidate. ``measured``: None if it could not be timed."""

    candidate: Candidate
    baseline_step_ms: float
    step_ms: float | None
    measured: Measured | None
    kept: bool
    reason: str
    rounds: int

    @property
    def untimed(self) -> bool:
        """Whether it has neither a time nor a failure."""
        return self.measured is None and self.reason == NOT_TIMED

    @property
    def undecided(self) -> bool:
        """Whether the time ended before there was a verdict: with more time it may be a gain."""
        return self.reason in (NOT_TIMED, ONCE, UNPROVEN)


def outcome(pairs: Pairs, limits: Limits, baseline_ms: float = 0.0) -> Outcome:
    """The verdict on the rounds of a candidate. It is a gain if the whole interval is above 1.

    ``baseline_ms``: the plain step time, if none was measured together with this candidate.
    """
    candidate, rounds = pairs.candidate, len(pairs.changed)
    baseline = fmean(pairs.baseline_ms) if pairs.baseline_ms else baseline_ms
    if pairs.failure or not rounds:
        return Outcome(candidate, baseline, None, None, False, pairs.failure or NOT_TIMED, rounds)
    found = interval.ratio_interval(pairs.log_ratios(), limits.first, pairs.errors())
    moved = losses.drift(
        [run.losses for run in pairs.plain],
        [run.losses for run in pairs.changed],
        candidate.safe,
        candidate.joined,
    )
    measured = Measured(found.speedup, found.low, found.high, moved.value, _memory(pairs))
    lighter = _lighter(pairs, found)
    reason = lighter if moved.allowed and lighter else _verdict(found, moved, rounds)
    step_ms = fmean(run.step_ms for run in pairs.changed) / candidate.work
    kept = (found.low > 1.0 or bool(lighter)) and moved.allowed
    # Only the plain runs of its own rounds, so that the columns of a table agree.
    paired = fmean(run.step_ms for run in pairs.plain)
    return Outcome(candidate, paired, step_ms, measured, kept, reason, rounds)


def _verdict(interval: Interval, moved: losses.Drift, rounds: int) -> str:
    if not moved.allowed:
        return moved.reason
    if rounds == 1:
        return ONCE
    if interval.high < 1.0:
        return "slower"
    if interval.low <= 1.0:
        return "no measurable gain"
    return moved.reason or "faster"


def _lighter(pairs: Pairs, interval: Interval) -> str:
    """A sentence if the candidate needs less memory in every round and is as fast; else ""."""
    ratios = _memory_ratios(pairs)
    if len(ratios) < 2 or len(ratios) < len(pairs.changed) or max(ratios) > LIGHTER:
        return ""
    if interval.low > 1.0:
        return f"faster, with {units.percent(fmean(ratios))} of the peak memory"
    if interval.low < AS_FAST or interval.high < 1.0:
        return ""
    return f"as fast, with {units.percent(fmean(ratios))} of the peak memory"


def _memory(pairs: Pairs) -> float | None:
    ratios = _memory_ratios(pairs)
    return fmean(ratios) if ratios else None


def _memory_ratios(pairs: Pairs) -> list[float]:
    return [
        changed.peak_bytes / plain.peak_bytes
        for plain, changed in zip(pairs.plain, pairs.changed, strict=True)
        if plain.peak_bytes and changed.peak_bytes
    ]
