"""The interval holds the truth as often as it says, on quiet and on noisy machines."""

from __future__ import annotations

import math
import random

from warpline.measure import interval


def measurement(draw, half_width: float = 0.02, limit: int = 40) -> interval.Interval:
    """Rounds drawn one by one as a contest draws them, until there are as many as needed."""
    ratios: list[float] = []
    while len(ratios) < min(limit, interval.rounds_needed(ratios, half_width)):
        ratios.append(draw())
    return interval.of(ratios)


def share_that_holds(truth: float, draw, repetitions: int = 800) -> float:
    found = [measurement(draw) for _ in range(repetitions)]
    return sum(one.low <= truth <= one.high for one in found) / repetitions


def test_a_change_that_changes_nothing_is_held_on_a_quiet_machine() -> None:
    noise = random.Random(1)
    assert share_that_holds(1.0, lambda: noise.gauss(0, 0.01)) > 0.93


def test_a_change_that_changes_nothing_is_held_on_a_busy_machine() -> None:
    noise = random.Random(2)
    assert share_that_holds(1.0, lambda: noise.gauss(0, 0.08)) > 0.93


def test_bursts_of_load_make_it_wider_and_not_wrong() -> None:
    noise = random.Random(3)

    def burst() -> float:
        # One run in five is hit by somebody else's work, plain and changed alike.
        plain, changed = (1 + (noise.random() < 0.2) * noise.expovariate(3) for _ in range(2))
        return math.log(plain / changed)

    assert share_that_holds(1.0, burst) > 0.93


def test_a_planted_slowdown_of_five_percent_is_found() -> None:
    noise = random.Random(4)
    found = [measurement(lambda: noise.gauss(math.log(0.95), 0.03)) for _ in range(300)]
    assert sum(one.high < 1.0 for one in found) / len(found) > 0.95


def test_one_round_bounds_nothing() -> None:
    assert interval.of([0.1]).low == 0.0
    assert interval.of([0.1]).high == math.inf
    assert interval.of([0.1]).half_width == math.inf


def test_equal_readings_leave_a_width() -> None:
    found = interval.of([0.0] * 5)
    assert found.low < 1.0 < found.high


def test_more_spread_asks_for_more_rounds() -> None:
    narrow = interval.rounds_needed([0.0, 0.01, -0.01, 0.0, 0.01], 0.02)
    wide = interval.rounds_needed([0.0, 0.1, -0.1, 0.0, 0.1], 0.02)
    assert interval.FIRST == narrow < wide
