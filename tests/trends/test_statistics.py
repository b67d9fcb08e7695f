"""The tests of a trend, held against sums done by hand and against chance."""

from __future__ import annotations

import random

import pytest

from warpline.trends.statistics import blocks, mann_kendall, outliers, slope, slope_interval


def test_a_strict_rise_of_ten() -> None:
    """S = 45, variance 125, z = 44 / sqrt(125) = 3.9355, two-sided 8.3e-5."""
    assert mann_kendall(range(10)) == pytest.approx(8.303e-5, rel=1e-3)
    assert mann_kendall(range(10, 0, -1)) == pytest.approx(8.303e-5, rel=1e-3)


def test_ties_take_from_the_variance() -> None:
    """Five equal and five larger: S = 25, variance 125 - 2 * 5 * 4 * 15 / 18 = 91.67, z = 2.5067."""
    assert mann_kendall([1] * 5 + [2] * 5) == pytest.approx(0.01219, rel=1e-3)
    assert mann_kendall([3] * 20) == 1.0


def test_noise_is_rarely_a_trend() -> None:
    chance = random.Random(1)
    found = sum(mann_kendall([chance.random() for _ in range(40)]) < 0.01 for _ in range(400))
    assert found <= 12  # 4 expected; 13 or more has a chance below 2 in 10,000


def test_few_values_have_no_trend() -> None:
    assert mann_kendall(range(7)) == 1.0


def test_the_slope_does_not_mind_one_wild_value() -> None:
    values = [2.0 * at for at in range(20)]
    values[7] = 1e6
    assert slope(range(20), values) == pytest.approx(2.0, rel=0.05)


def test_outliers_lie_above_the_rest() -> None:
    assert outliers([10, 11, 9, 10, 30, 10, 11, 1]) == [4]


def dependent(chance: random.Random, count: int, like: float = 0.5) -> list[float]:
    """Each value is ``like`` times the one before it, and noise."""
    values = [chance.gauss(0, 1)]
    while len(values) < count:
        values.append(like * values[-1] + chance.gauss(0, (1 - like**2) ** 0.5))
    return values


def test_neighbours_that_resemble_each_other_are_rarely_a_trend() -> None:
    """Taken for independent, 12 % of such series would be trends at 0.01."""
    chance = random.Random(5)
    found = sum(mann_kendall(dependent(chance, 40)) < 0.01 for _ in range(300))
    assert found <= 18


def test_a_drift_of_four_deviations_is_found_in_twenty_windows() -> None:
    chance = random.Random(6)
    found = sum(mann_kendall([chance.gauss(4 * at / 19, 1) for at in range(20)]) < 0.01 for _ in range(200))
    assert found >= 180


def test_the_interval_of_the_slope_has_the_true_one_in_19_of_20() -> None:
    chance = random.Random(7)
    inside = 0
    for _ in range(200):
        low, high = slope_interval(range(20), [chance.gauss(0.1 * at, 1) for at in range(20)])
        inside += low <= 0.1 <= high
    assert 180 <= inside <= 199


def test_blocks_have_less_noise_than_every_fourth_value() -> None:
    values = [1.0, 2.0, 9.0, 4.0, 5.0]
    assert blocks(values, 5) == values
    assert blocks(values, 2) == [2.0, 4.5]
