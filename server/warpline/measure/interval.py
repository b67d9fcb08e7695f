"""The interval of a speed-up, from pairs of runs.

Each round runs the plain and the changed script in processes of their own, one right after the
other, and gives one log ratio of their mean step times. A step within a process is no independent
observation (memory layout, clocks and the loader's phase are shared by all of them), a process is:
T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013. The mean of the
log ratios over rounds has Student's interval.

When to stop must not be decided by looking at the interval again and again, which would make it
too narrow. Stein's two stages are exact: the spread of the first ``FIRST`` rounds alone decides how
many rounds there will be, and the interval is made with that same spread and its degrees of
freedom. C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the
variance", Annals of Mathematical Statistics 16 (1945). Load comes in bursts, which a first stage may
miss: where the spread of all rounds is larger it is taken instead, which can only widen the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

FIRST = 5

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
        """Of the logarithm: 0.02 is about 2 % to either side."""
        return math.log(self.high / self.low) / 2 if self.low > 0 and self.high < math.inf else math.inf


def of(log_ratios: Sequence[float], first: int = FIRST) -> Interval:
    """The interval from all rounds, of which the ``first`` ones decided how many there are.

    One round has no spread: its interval is 0 to infinity.
    """
    centre = fmean(log_ratios)
    stage = log_ratios[:first]
    if len(stage) < 2:
        return Interval(math.exp(centre), 0.0, math.inf)
    spread = max(_spread(stage), _spread(log_ratios))
    half = student(len(stage) - 1) * spread / math.sqrt(len(log_ratios))
    return Interval(math.exp(centre), math.exp(centre - half), math.exp(min(centre + half, 700.0)))


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
