"""A time from one run or several, with its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from warpline.model.student import student

#: The median absolute deviation of normal values, as a share of their standard deviation.
_DEVIATION = 0.6745


@dataclass(frozen=True, slots=True)
class Reading:
    """``noise_ms``: half the width of the mean's 95 % interval."""

    ms: float
    noise_ms: float


def mean_reading(values_ms: Sequence[float], alone_ms: float, noise_percent: float) -> Reading:
    """One value from each run. Two runs or more have Student's interval of their mean: a process is the
    unit that repeats (Kalibera and Jones, ISMM 2013). A single run says nothing about the next one, and then
    the noise is ``alone_ms``, that of its own steps. It is never less than ``noise_percent`` of the value.
    """
    mean = fmean(values_ms)
    count = len(values_ms)
    noise = student(count - 1) * stdev(values_ms) / math.sqrt(count) if count > 1 else alone_ms
    return Reading(mean, max(noise, mean * noise_percent / 100))


def of_steps(timed_ns: Sequence[int]) -> float:
    """Half the width of the 95 % interval of the mean step of one run, in milliseconds.

    The spread is estimated by the median absolute deviation, so that one slow step (a checkpoint, a
    neighbour's burst) does not excuse the others. 0 with fewer than three steps: nothing is known.
    """
    if len(timed_ns) < 3:
        return 0.0
    middle = median(timed_ns)
    spread = median(abs(step - middle) for step in timed_ns) / _DEVIATION
    return student(len(timed_ns) - 1) * spread / math.sqrt(len(timed_ns)) / 1e6


def more_than(after: Reading, limit: float, before: Reading | None = None) -> float:
    """How many ms ``after`` is above ``limit``, after the noise is subtracted; 0 or less where it may not be
    above. ``before``: the reading that the limit was made from, which has noise of its own."""
    noise = math.hypot(after.noise_ms, before.noise_ms if before is not None else 0.0)
    return after.ms - limit - noise
