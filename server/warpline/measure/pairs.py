"""The rounds of one candidate, and when there are enough of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import fmean

from warpline.measure import interval
from warpline.measure.candidate import Candidate
from warpline.measure.timed import Timed
from warpline.model.student import student


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a measurement, in rounds and seconds."""

    first: int = interval.FIRST  # rounds that decide the total number of rounds
    half_width: float = 0.02  # of the log ratio; or a fifth of the gain, where that is wider
    rounds: int = 16
    seconds: float = 300.0  # for all rounds; a round that has begun is finished
    run_s: float = 120.0  # for one process, such as a candidate that hangs
    plain_s: float | None = None  # for one process of the plain script, if different

    def for_gain(self, speedup: float) -> Limits:
        """The same with fewer first rounds, at least two, for a gain of about ``speedup`` (> 0), which other
        rounds showed: as many as give the wanted interval where rounds spread by ``half_width``."""
        wanted = _wanted(self, math.log(speedup))
        enough = (
            count
            for count in range(2, self.first)
            if student(count - 1) * self.half_width / math.sqrt(count) <= wanted
        )
        return replace(self, first=next(enough, self.first))


#: For many fixes at once: three rounds show a clear gain; a small one needs more.
QUICK = Limits(first=3, rounds=10, seconds=math.inf, run_s=60.0, plain_s=120.0)


@dataclass(slots=True, eq=False)
class Pairs:
    """The rounds of one candidate so far; each is a plain and a changed run."""

    candidate: Candidate
    plain: list[Timed] = field(default_factory=list)
    changed: list[Timed] = field(default_factory=list)
    baseline_ms: list[float] = field(default_factory=list)  # all plain runs, also if the changed one failed
    failure: str = ""
    seconds: float = 0.0  # longest time of its processes; without importing torch if started in parallel
    plain_seconds: float = 0.0  # the same for the plain script

    def add(self, plain: Timed, changed: Timed | None, plain_s: float) -> None:
        """Add a run of the plain script, and one of the changed script (None: it failed)."""
        self.baseline_ms.append(plain.step_ms)
        self.plain_seconds = max(self.plain_seconds, plain_s)
        if changed is not None:
            self.plain.append(plain)
            self.changed.append(changed)

    def log_ratios(self) -> list[float]:
        """The log of each round's gain: plain over changed step time, for the same number of samples."""
        work = math.log(self.candidate.work)
        both = zip(self.plain, self.changed, strict=True)
        return [work + _log_ratio(plain, changed) for plain, changed in both]

    def errors(self) -> list[float]:
        """The standard error of each of them, as far as the slices of that round tell; 0 without slices."""
        both = zip(self.plain, self.changed, strict=True)
        return [interval.error_of(found) if (found := _slices(*one)) else 0.0 for one in both]

    def needed(self, limits: Limits) -> int:
        """Number of rounds for an interval that is narrow enough, at most ``limits.rounds``."""
        ratios = self.log_ratios()
        if len(ratios) < limits.first or limits.first < 2:
            return limits.first  # one round has no spread that could ask for more
        wanted = _wanted(limits, fmean(ratios[: limits.first]))
        return min(limits.rounds, interval.rounds_needed(ratios, wanted, limits.first, self.errors()))


def _wanted(limits: Limits, log_gain: float) -> float:
    """The wanted half-width of the interval of the log ratio."""
    return max(limits.half_width, abs(log_gain) / 5)


def _slices(plain: Timed, changed: Timed) -> list[float]:
    """The log ratio of each slice and its neighbour of the other process."""
    return [math.log(one / other) for one, other in zip(plain.slices, changed.slices, strict=False)]


def _log_ratio(plain: Timed, changed: Timed) -> float:
    """The log ratio of one round. Each slice is compared with its neighbours of the other process. So a short
    disturbance counts little, and a long one affects both alike."""
    usual, other_usual = plain.step_ms - plain.epoch_ms, changed.step_ms - changed.epoch_ms
    slices = _slices(plain, changed)
    found = interval.centre_of(slices) if slices else math.log(usual / other_usual)
    if not (plain.epochs and changed.epochs):
        return found
    # Epochs began in both: their cost is part of the step in both.
    return math.log((usual + plain.epoch_ms) / (usual / math.exp(found) + changed.epoch_ms))
