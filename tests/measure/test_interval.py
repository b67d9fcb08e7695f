"""The interval holds the truth as often as it says, on quiet and on noisy machines."""

from __future__ import annotations

import math
import random
from statistics import fmean, stdev

import pytest

from warpline.measure import interval


def measurement(draw, half_width: float = 0.02, limit: int = 40) -> interval.Interval:
    """Rounds drawn one by one as a contest draws them, until there are as many as needed."""
    ratios: list[float] = []
    while len(ratios) < min(limit, interval.rounds_needed(ratios, half_width)):
        ratios.append(draw())
    return interval.ratio_interval(ratios)


def share_that_holds(truth: float, draw, repetitions: int = 400) -> float:
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


def test_a_slowdown_is_found_although_some_rounds_are_far_off() -> None:
    """A neighbour that comes and goes: a fifth of the processes takes half as long again and more."""
    noise = random.Random(5)

    def hit() -> float:
        plain, changed = (noise.gauss(0, 0.02) + (noise.random() < 0.2) * 0.5 for _ in range(2))
        return plain - changed

    def measured(shift: float) -> list[interval.Interval]:
        return [measurement(lambda: shift + hit(), limit=16) for _ in range(400)]

    assert sum(one.low <= 1 <= one.high for one in measured(0.0)) / 400 > 0.93
    slower = measured(math.log(0.95))
    assert sum(one.low <= 0.95 <= one.high for one in slower) / 400 > 0.93
    assert sum(one.high < 1.0 for one in slower) / 400 > 0.25


@pytest.mark.parametrize(("rounds", "cut"), [(8, 2), (10, 6), (16, 26), (24, 75)])
def test_the_cut_leaves_what_signed_ranks_allow(rounds: int, cut: int) -> None:
    """By trying all signs: that rank sums are as small as the cut comes about one time in sixty."""
    noise = random.Random(6)
    sums = [sum(rank for rank in range(1, rounds + 1) if noise.random() < 0.5) for _ in range(40_000)]
    assert interval.outside(rounds) == cut
    assert sum(one <= cut for one in sums) / len(sums) <= interval.TAIL + 0.003
    assert sum(one <= cut + 1 for one in sums) / len(sums) > interval.TAIL - 0.005


def test_one_round_bounds_nothing() -> None:
    assert interval.ratio_interval([0.1]).low == 0.0
    assert interval.ratio_interval([0.1]).high == math.inf
    assert interval.ratio_interval([0.1]).half_width == math.inf


def test_equal_readings_leave_a_width() -> None:
    found = interval.ratio_interval([0.0] * 5)
    assert found.low < 1.0 < found.high


def test_more_spread_asks_for_more_rounds() -> None:
    narrow = interval.rounds_needed([0.0, 0.01, -0.01, 0.0, 0.01], 0.02)
    wide = interval.rounds_needed([0.0, 0.1, -0.1, 0.0, 0.1], 0.02)
    assert interval.FIRST == narrow < wide


def test_rounds_that_happen_to_agree_are_believed_no_more_than_their_slices() -> None:
    agreeing = [0.0095, 0.0100, 0.0105]
    assert interval.ratio_interval(agreeing, first=3).low > 1.0
    found = interval.ratio_interval(agreeing, first=3, errors=[0.03, 0.02, 0.03])
    assert found.low < 1.0 < found.high
    assert found.half_width == pytest.approx(1.96 * math.sqrt(0.0022 / 3 / 3))
    assert interval.rounds_needed(agreeing, 0.02, first=3) == 3
    assert interval.rounds_needed(agreeing, 0.02, first=3, errors=[0.03, 0.02, 0.03]) == 8
    ranked = interval.ratio_interval([0.01] * 8, first=3, errors=[0.03] * 8)
    assert ranked.half_width == pytest.approx(1.96 * 0.03 / math.sqrt(8))


def test_rounds_that_differ_are_not_made_narrower_by_their_slices() -> None:
    differing = [0.0, 0.1, -0.1]
    plain = interval.ratio_interval(differing, first=3)
    assert interval.ratio_interval(differing, first=3, errors=[0.001] * 3) == plain
    assert interval.ratio_interval(differing, first=3, errors=[0.0] * 3) == plain


def test_the_error_of_a_round_is_what_its_slices_make_of_it() -> None:
    """Of one round in three hundred slices are normal, of another a tenth is far off."""
    noise = random.Random(7)
    for far in (0.0, 0.1):

        def draw(far: float = far) -> list[float]:
            return [noise.gauss(0, 1.5 if noise.random() < far else 0.15) for _ in range(36)]

        rounds = [draw() for _ in range(300)]
        seen = stdev(map(interval.centre_of, rounds))
        assert fmean(map(interval.error_of, rounds)) == pytest.approx(seen, rel=0.15)


def test_false_gains_are_fewer_on_a_busy_machine() -> None:
    """Of rounds that differ by what their slices do, three agree by chance in one time of fifty."""
    noise = random.Random(8)

    def measured() -> interval.Interval:
        ratios: list[float] = []
        errors: list[float] = []
        while len(ratios) < min(10, interval.rounds_needed(ratios, 0.02, 3, errors)):
            slices = [noise.gauss(0, 0.15) for _ in range(36)]
            ratios.append(interval.centre_of(slices))
            errors.append(interval.error_of(slices))
        return interval.ratio_interval(ratios, 3, errors)

    assert sum(measured().low > 1 for _ in range(600)) < 9
