"""The interval of a speed-up, from pairs of runs.

Each round runs the plain and the changed script in processes of their own, one right after the
other, and gives one log ratio of their mean step times. A step within a process is not an independent
observation (memory layout, clocks and the loader's phase are shared by all of them), a process is:
T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.

When to stop must not be decided by looking at the interval again and again, which would make it
too narrow: the spread of the first ``FIRST`` rounds alone decides how many rounds there will be
(C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the variance",
Annals of Mathematical Statistics 16, 1945).

A few rounds have Student's interval, made with the spread of that first stage, or of all rounds where
that is larger. On a machine that others use, some rounds are far off, now one way and now the other:
plain and changed runs are hit alike, so the log ratios lie symmetrically about the true one. From
``RANKED`` rounds on that symmetry is all that is asked for: the estimate of J. Hodges and E. Lehmann
("Estimates of location based on rank tests", Annals of Mathematical Statistics 34, 1963) with the
interval of Wilcoxon's signed ranks, which outliers hardly move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from statistics import fmean, median, stdev

FIRST = 5
#: Fewer rounds than these give signed ranks an interval from end to end.
RANKED = 8
#: Of 95 %, each side's share would be 2.5 %. That the first rounds decide how many there are costs up to
#: 1.5 points (simulated with even, bursty and two-humped noise), so a little more is asked.
TAIL = 0.0165

# Two-sided 95 % points of Student's t by degrees of freedom; beyond the table the last one is used,
# which is a little too wide.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)

#: No clock and no machine repeats itself better than this, whatever a lucky first stage says
#: (six equal readings must not make an interval of no width).
FLOOR = 0.001


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio of step times and the bounds that hold it in 95 of 100 repetitions."""

    speedup: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval of the log ratio: 0.02 is about 2 % to either side."""
        return math.log(self.high / self.low) / 2 if self.low > 0 and self.high < math.inf else math.inf


def ratio_interval(log_ratios: Sequence[float], first: int = FIRST) -> Interval:
    """The interval from all rounds; the ``first`` ones decided how many there are.

    One round has no spread: its interval is 0 to infinity.
    """
    stage = log_ratios[:first]
    if len(stage) < 2:
        return Interval(math.exp(fmean(log_ratios)), 0.0, math.inf)
    if len(log_ratios) >= RANKED:
        return _ranked(log_ratios)
    centre = fmean(log_ratios)
    spread = max(_spread(stage), _spread(log_ratios))
    half = student(len(stage) - 1) * spread / math.sqrt(len(log_ratios))
    return Interval(math.exp(centre), math.exp(centre - half), math.exp(min(centre + half, 700.0)))


def _ranked(log_ratios: Sequence[float]) -> Interval:
    """The median of the Walsh averages (means of two rounds, or of one with itself), and those of them
    that are as far from the ends as signed ranks allow.
    """
    walsh = _walsh(log_ratios)
    centre, cut = median(walsh), outside(len(log_ratios))
    low, high = min(walsh[cut], centre - FLOOR), max(walsh[-1 - cut], centre + FLOOR)
    return Interval(math.exp(centre), math.exp(low), math.exp(min(high, 700.0)))


def centre_of(log_ratios: Sequence[float]) -> float:
    """The estimate of Hodges and Lehmann: as good as the mean where noise is even, and hardly moved by
    readings that are far off, up to three tenths of them.
    """
    return median(_walsh(log_ratios))


def _walsh(values: Sequence[float]) -> list[float]:
    count = len(values)
    return sorted((values[one] + values[other]) / 2 for one in range(count) for other in range(one, count))


@cache
def outside(rounds: int) -> int:
    """How many Walsh averages at each end lie outside the interval of so many rounds.

    One fewer than the rank sums that come with a probability of up to ``TAIL`` when every sign is as
    likely as the other.
    """
    ways = [1]  # number of sets of ranks with each sum
    for rank in range(1, rounds + 1):
        longer = [*ways, *[0] * rank]
        ways = [count + (longer[at - rank] if at >= rank else 0) for at, count in enumerate(longer)]
    likely = accumulate(ways)
    return sum(1 for count in likely if count <= TAIL * 2**rounds) - 1


def rounds_needed(log_ratios: Sequence[float], half_width: float, first: int = FIRST) -> int:
    """How many rounds in all make the interval's half-width (of the logarithm) ``half_width``."""
    if len(log_ratios) < first:
        return first
    stage = log_ratios[:first]
    return max(first, math.ceil((student(first - 1) * _spread(stage) / half_width) ** 2))


def student(degrees: int) -> float:
    """The two-sided 95 % point of Student's t."""
    return _T95[min(degrees, len(_T95)) - 1]


def _spread(stage: Sequence[float]) -> float:
    return max(stdev(stage), FLOOR)
