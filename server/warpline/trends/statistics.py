"""Statistical tests for trends, as in the textbooks.

Mann, "Nonparametric tests against trend", Econometrica 13 (1945); Kendall, "Rank Correlation Methods" (1975);
Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968); Iglewicz and Hoaglin,
"How to Detect and Handle Outliers" (1993), whose limit of 3.5 for the modified z-score is used.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

OUTLIER = 3.5
#: Values below which the normal approximation is not one.
FEWEST = 8
#: Of the normal distribution: 95 % lie within so many deviations, and 95 % below so many.
WIDE, CLEAR = 1.96, 1.645
#: The likeness of neighbours is taken for no more than this, above which the variance has no end.
MOST_ALIKE = 0.95


def mann_kendall(values: Sequence[float]) -> float:
    """The two-sided probability of a trend at least as clear in values without any; 1 for fewer than 8.

    Ties are accounted for, and neighbours that resemble each other (:func:`dependence`).
    """
    count = len(values)
    if count < FEWEST:
        return 1.0
    score = sum(
        (after > before) - (after < before) for at, before in enumerate(values) for after in values[at + 1 :]
    )
    variance = _variance(values)
    if variance <= 0:
        return 1.0
    z = (abs(score) - 1) / math.sqrt(variance) if score else 0.0
    return math.erfc(z / math.sqrt(2))


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Sen's: the median of the slopes between all pairs; 0 where there are none."""
    slopes = _slopes(times, values)
    return median(slopes) if slopes else 0.0


def slope_interval(times: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of :func:`slope` (Sen 1968; Gilbert, "Statistical Methods", 1987, 16.4.2).

    From minus to plus infinity where there are too few values to know one end.
    """
    slopes = sorted(_slopes(times, values))
    if len(values) < FEWEST or not slopes:
        return -math.inf, math.inf
    half = WIDE * math.sqrt(max(0.0, _variance(values))) / 2
    low, high = math.floor(len(slopes) / 2 - half), math.ceil(len(slopes) / 2 + half)
    if low < 1 or high >= len(slopes):
        return -math.inf, math.inf
    return slopes[low - 1], slopes[high]


def dependence(values: Sequence[float]) -> float:
    """How many times the variance of Mann and Kendall's score is that of independent values; 1 for those.

    Step times are not independent: another process on the machine slows some neighbours. The correlation of
    neighbours is that of the ranks of the values without their trend, corrected for its bias, where it is
    above zero at 95 % (one-sided); the rest follows as in a process of first order (Yue and Wang, "The
    Mann-Kendall test modified by effective sample size", Water Resources Management 18, 2004).
    """
    count = len(values)
    by = slope(range(count), values)
    rank = _ranks([value - by * at for at, value in enumerate(values)])
    spread = sum(one * one for one in rank)
    near = sum(before * after for before, after in pairwise(rank)) / spread if spread else 0.0
    if near <= CLEAR / math.sqrt(count):
        return 1.0
    near = min((count * near + 2) / (count - 4), MOST_ALIKE)
    return 1 + 2 * sum((1 - lag / count) * near**lag for lag in range(1, count))


def blocks(values: Sequence[float], most: int) -> list[float]:
    """At most ``most`` values: medians of neighbours, which have less noise than every k-th value."""
    size = max(1, -(-len(values) // most))
    return [median(values[at : at + size]) for at in range(0, len(values), size)]


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks less their mean; equal values share theirs."""
    ordered = sorted(values)
    middle = (len(values) - 1) / 2
    return [(bisect_left(ordered, one) + bisect_right(ordered, one) - 1) / 2 - middle for one in values]


def _slopes(times: Sequence[float], values: Sequence[float]) -> list[float]:
    return [
        (values[after] - values[at]) / (times[after] - times[at])
        for at in range(len(times))
        for after in range(at + 1, len(times))
        if times[after] != times[at]
    ]


def _variance(values: Sequence[float]) -> float:
    """The variance of the score (the sum of the signs of all pairs' differences) where there is no trend."""
    count = len(values)
    ties = sum(same * (same - 1) * (2 * same + 5) for same in Counter(values).values())
    plain = (count * (count - 1) * (2 * count + 5) - ties) / 18
    return plain * dependence(values) if plain > 0 else 0.0


def outliers(values: Sequence[float]) -> list[int]:
    """Indices of those above the middle by more than ``OUTLIER`` modified z-scores."""
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    return [at for at, value in enumerate(values) if 0.6745 * (value - middle) > OUTLIER * spread]
