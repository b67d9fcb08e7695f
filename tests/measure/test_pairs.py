"""What one round says, and how many of them there have to be. Step times are made up."""

from __future__ import annotations

import math

import pytest

from warpline.measure.candidate import Candidate
from warpline.measure.pairs import Limits, Pairs
from warpline.measure.timed import Timed


def pairs(plain: Timed, changed: Timed, work: float = 1.0) -> Pairs:
    return Pairs(Candidate(("f",), "a fix", work=work), [plain], [changed])


def sliced(*slices: float) -> Timed:
    return Timed(sum(slices) / len(slices), slices=slices)


def test_windows_without_slices_are_compared_by_their_means() -> None:
    assert pairs(Timed(30.0), Timed(20.0)).log_ratios() == [pytest.approx(math.log(1.5))]
    assert pairs(sliced(30.0, 30.0), Timed(20.0)).log_ratios() == [pytest.approx(math.log(1.5))]


def test_work_is_a_step_s_samples() -> None:
    assert pairs(Timed(30.0), Timed(40.0), work=2.0).log_ratios() == [pytest.approx(math.log(1.5))]
    one = pairs(sliced(30.0, 30.0), sliced(40.0, 40.0), work=2.0)
    assert one.log_ratios() == [pytest.approx(math.log(1.5))]


def test_a_slow_moment_that_both_share_does_not_count() -> None:
    plain, changed = sliced(10, 10, 30, 30, 30, 10), sliced(8, 8, 24, 24, 24, 8)
    assert pairs(plain, changed).log_ratios() == [pytest.approx(math.log(1.25))]


def test_a_burst_that_hits_one_of_them_counts_little() -> None:
    plain = sliced(*[10.1, 9.9] * 6, 50.0, 80.0)
    changed = sliced(*[8.0, 8.0] * 7)
    assert pairs(plain, changed).log_ratios() == [pytest.approx(math.log(1.25), abs=0.01)]
    assert math.log(plain.step_ms / changed.step_ms) > math.log(2)


def test_rounds_that_agree_need_no_more() -> None:
    one = Pairs(Candidate(("f",), "a fix"), [Timed(20.0)] * 5, [Timed(10.0)] * 5)
    assert one.needed(Limits()) == 5


@pytest.mark.parametrize(("speedup", "first"), [(1.0, 4), (1.2, 4), (1.4, 3), (0.7, 3), (3.0, 2)])
def test_a_clear_gain_needs_fewer_rounds(speedup: float, first: int) -> None:
    assert Limits(first=4, half_width=0.02).for_gain(speedup).first == first
