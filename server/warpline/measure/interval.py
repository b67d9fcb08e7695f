"""The interval of a speed-up, from pairs of runs.

Each round runs the plain and the changed script in separate processes, one right after the other, and gives
one log ratio of their mean step times. Processes are independent observations; steps of one process are not,
since they share its memory layout, clock rates and loader phase: T. Kalibera and R. Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013.

Deciding when to stop by looking at the interval again and again would make it too narrow. So the number of
rounds depends only on the spread of the first ``FIRST`` rounds (C. Stein, "A two-sample test for a linear
hypothesis whose power is independent of the variance", Annals of Mathematical Statistics 16, 1945).

With few rounds this is Student's interval, with the spread of the first stage, or of all rounds if that is
larger. Three rounds that happen to agree would make it too narrow: one time in forty they have a sixth of the
true spread. So it is never narrower than the many slices of the rounds allow (:func:`error_of`).

On a shared machine some rounds are far off, in either direction: plain and changed runs are disturbed alike,
so the log ratios are symmetric about the true one. From ``RANKED`` rounds on only this symmetry is assumed:
the estimate of J. Hodges and E. Lehmann ("Estimates of location based on rank tests", Annals of Mathematical
Statistics 34, 1963) with the interval of Wilcoxon's signed ranks, which outliers hardly change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import fmean, median, stdev

from warpline.model.student import student

FIRST = 5
#: With fewer rounds, the interval of signed ranks is the whole range of the values.
RANKED = 8
#: Probability outside the interval on each side. A 95 % interval has 2.5 %. The coverage drops by up to 1.5
#: points because the first rounds decide the number of rounds (simulated with even, bursty and two-humped
#: noise), so the interval is made wider.
TAIL = 0.0165

#: Least spread of log ratios: no machine is more repeatable. Without it, equal readings in the first stage
#: would give an interval of width 0.
FLOOR = 0.001
#: The two-sided 95 % point of the normal distribution, for errors that are known from many slices.
NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio of step times, and bounds that contain the true ratio in 95 of 100 repetitions."""

    speedup: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval of the log ratio: 0.02 is about 2 % in each direction."""
        return math.log(self.high / self.low) / 2 if self.low > 0 and self.high < math.inf else math.inf


def ratio_interval(log_ratios: Sequence[float], first: int = FIRST, errors: Sequence[float] = ()) -> Interval:
    """The interval from all rounds. The ``first`` ones decided how many there are.

    ``errors``: the standard error of each round's log ratio, as far as its slices tell (0: it has none).
    With one round the interval is 0 to infinity, since there is no spread.
    """
    stage = log_ratios[:first]
    if len(stage) < 2:
        return Interval(math.exp(fmean(log_ratios)), 0.0, math.inf)
    if len(log_ratios) >= RANKED:
        return _ranked(log_ratios, _least(errors, len(log_ratios)))
    centre = fmean(log_ratios)
    spread = max(_spread(stage), _spread(log_ratios))
    half = student(len(stage) - 1) * spread / math.sqrt(len(log_ratios))
    half = max(half, _least(errors, len(log_ratios)))
    return Interval(math.exp(centre), math.exp(centre - half), math.exp(min(centre + half, 700.0)))


def _least(errors: Sequence[float], rounds: int) -> float:
    """The half-width of an interval of so many rounds that differ by no more than their ``errors``."""
    return NORMAL * math.sqrt(fmean(one * one for one in errors) / rounds) if errors else 0.0


def _ranked(log_ratios: Sequence[float], least: float) -> Interval:
    """The Hodges-Lehmann estimate, with the interval of signed ranks, of a half-width of ``least`` or more.

    The Walsh averages are the means of all pairs of rounds, each round with itself included. The estimate is
    their median. The bounds are the Walsh averages with :func:`outside` others beyond them.
    """
    walsh = _walsh(log_ratios)
    centre, cut = median(walsh), outside(len(log_ratios))
    least = max(FLOOR, least)
    low, high = min(walsh[cut], centre - least), max(walsh[-1 - cut], centre + least)
    return Interval(math.exp(centre), math.exp(low), math.exp(min(high, 700.0)))


def centre_of(log_ratios: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate. It is about as precise as the mean for normal noise, and up to 30 % of
    outliers hardly change it.
    """
    return median(_walsh(log_ratios))


def error_of(log_ratios: Sequence[float]) -> float:
    """The standard error of :func:`centre_of`, of neighbouring slices of one round.

    Half of the Walsh averages between the rank sums one standard deviation to either side (E. Lehmann,
    "Nonparametric confidence intervals for a shift parameter", Annals of Mathematical Statistics 34, 1963).
    """
    walsh, count = _walsh(log_ratios), len(log_ratios)
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = max(0, round(len(walsh) / 2 - spread))
    return (walsh[-1 - cut] - walsh[cut]) / 2


def _walsh(values: Sequence[float]) -> list[float]:
    count = len(values)
    return sorted((values[one] + values[other]) / 2 for one in range(count) for other in range(one, count))


@cache
def outside(rounds: int) -> int:
    """Number of Walsh averages at each end that are outside the interval.

    It is one less than the number of rank sums, from the smallest on, with a total probability of at most
    ``TAIL`` if both signs are equally likely.
    """
    ways = [1]  # number of sets of ranks with each sum
    for rank in range(1, rounds + 1):
        longer = [*ways, *[0] * rank]
        ways = [count + (longer[at - rank] if at >= rank else 0) for at, count in enumerate(longer)]
    likely = accumulate(ways)
    return sum(1 for count in likely if count <= TAIL * 2**rounds) - 1


def rounds_needed(
    log_ratios: Sequence[float], half_width: float, first: int = FIRST, errors: Sequence[float] = ()
) -> int:
    """Total number of rounds for an interval of the log ratio with this ``half_width``. ``errors``: as in
    :func:`ratio_interval`."""
    if len(log_ratios) < first:
        return first
    stage = log_ratios[:first]
    single = max(student(first - 1) * _spread(stage), _least(errors[:first], 1))
    return max(first, math.ceil((single / half_width) ** 2))


def _spread(stage: Sequence[float]) -> float:
    return max(stdev(stage), FLOOR)
