"""Statistical tests for trends, as in the textbooks.

Mann, "Nonparametric tests against trend", Econometrica 13 (1945); Kendall, "Rank Correlation Methods" (1975);
Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968); Iglewicz and Hoaglin,
"How to Detect and Handle Outliers" (1993), whose limit of 3.5 for the modified z-score is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

OUTLIER = 3.5


def mann_kendall(values: Sequence[float]) -> float:
    """The two-sided probability of a trend at least as clear in values without any; 1 for fewer than 8.

    Assumes that the values do not depend on their neighbours. Ties are accounted for.
    """
    count = len(values)
    if count < 8:  # below that the normal approximation is not one
        return 1.0
    score = sum(
        (after > before) - (after < before) for at, before in enumerate(values) for after in values[at + 1 :]
    )
    ties = sum(same * (same - 1) * (2 * same + 5) for same in Counter(values).values())
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    if variance <= 0:
        return 1.0
    z = (abs(score) - 1) / math.sqrt(variance) if score else 0.0
    return math.erfc(z / math.sqrt(2))


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Sen's: the median of the slopes between all pairs; 0 where there are none."""
    slopes = [
        (values[after] - values[at]) / (times[after] - times[at])
        for at in range(len(times))
        for after in range(at + 1, len(times))
        if times[after] != times[at]
    ]
    return median(slopes) if slopes else 0.0


def outliers(values: Sequence[float]) -> list[int]:
    """Indices of those above the middle by more than ``OUTLIER`` modified z-scores."""
    middle = median(values)
    spread = median(abs(value - middle) for value in values)
    return [at for at, value in enumerate(values) if 0.6745 * (value - middle) > OUTLIER * spread]
