"""The rounds of one candidate, and when there are enough of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import fmean

from warpline.measure import interval
from warpline.measure.candidate import Candidate
from warpline.measure.timed import Timed


@dataclass(frozen=True, slots=True)
class Limits:
    """When a measurement has cost enough."""

    first: int = interval.FIRST  # rounds that decide how many there will be
    half_width: float = 0.02  # of the log ratio; or a fifth of the gain, where that is wider
    rounds: int = 16
    seconds: float = 300.0  # for all rounds; the round that is running is finished
    run_s: float = 120.0  # for one process: a candidate that hangs costs this
    plain_s: float | None = None  # for one of the plain script, where that is another


#: For many fixes at once: a clear gain is seen in three rounds, a small one asks for more of them.
QUICK = Limits(first=3, rounds=10, seconds=math.inf, run_s=60.0, plain_s=120.0)


@dataclass(slots=True, eq=False)
class Pairs:
    """The rounds of one candidate so far, the plain run of each beside the changed one."""

    candidate: Candidate
    plain: list[Timed] = field(default_factory=list)
    changed: list[Timed] = field(default_factory=list)
    baseline_ms: list[float] = field(default_factory=list)  # of every plain run, also beside a failure
    failure: str = ""
    seconds: float = 0.0  # the longest that one of its processes took, the import of torch left out
    plain_seconds: float = 0.0  # where processes were started side by side; the same of the plain script

    def add(self, plain: Timed, changed: Timed | None, plain_s: float) -> None:
        """One more run of the plain script, and of the changed one unless that failed."""
        self.baseline_ms.append(plain.step_ms)
        self.plain_seconds = max(self.plain_seconds, plain_s)
        if changed is not None:
            self.plain.append(plain)
            self.changed.append(changed)

    def log_ratios(self) -> list[float]:
        """The logarithm of each round's gain: plain over changed step time, for the same number of
        samples."""
        work = math.log(self.candidate.work)
        both = zip(self.plain, self.changed, strict=True)
        return [work + _log_ratio(plain, changed) for plain, changed in both]

    def needed(self, limits: Limits) -> int:
        """How many rounds the interval needs to become narrow enough, at most ``limits.rounds``."""
        ratios = self.log_ratios()
        if len(ratios) < limits.first or limits.first < 2:
            return limits.first  # one round has no spread that could ask for more
        wanted = max(limits.half_width, abs(fmean(ratios[: limits.first])) / 5)
        return min(limits.rounds, interval.rounds_needed(ratios, wanted, limits.first))


def _log_ratio(plain: Timed, changed: Timed) -> float:
    """The log ratio of one round. Slices are compared with their neighbours of the other process, so that a
    short disturbance counts little and a long one affects both alike."""
    usual, other_usual = plain.step_ms - plain.epoch_ms, changed.step_ms - changed.epoch_ms
    slices = list(zip(plain.slices, changed.slices, strict=False))
    if slices:
        found = interval.centre_of([math.log(one / other) for one, other in slices])
    else:
        found = math.log(usual / other_usual)
    if not (plain.epochs and changed.epochs):
        return found
    # Both saw epochs begin: what that costs belongs to the step, in one and in the other.
    return math.log((usual + plain.epoch_ms) / (usual / math.exp(found) + changed.epoch_ms))
