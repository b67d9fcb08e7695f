"""How wide a prediction's interval is."""

from __future__ import annotations

import math
import random

import pytest

from warpline.measure.calibration import (
    ENOUGH,
    FEW,
    LEAST_READINGS,
    Miss,
    Reading,
    known,
    scale,
    width,
    with_bounds,
)
from warpline.model.report import Predicted


def predicted(speedup: float, basis: str = "simulated") -> Predicted:
    return Predicted(10.0 / speedup, speedup, basis)  # type: ignore[arg-type]


def test_it_holds_the_prediction_and_is_wider_for_larger_gains() -> None:
    widths = []
    for speedup in (1.02, 1.3, 2.0):
        found = with_bounds(predicted(speedup), [])
        assert found.low is not None
        assert found.high is not None
        assert found.low < speedup < found.high
        widths.append(found.high / found.low)
    assert widths == sorted(widths)


def test_nine_of_ten_lie_inside_the_intervals_that_other_scripts_make() -> None:
    """As far as so many readings can tell: more misses than that have a chance of 5 % at one in ten."""
    missed = 0
    for one in known():
        others = [other for other in known() if other.script != one.script]
        found = with_bounds(predicted(one.predicted, one.basis), [], others, one.device, one.rule)
        assert found.low is not None
        assert found.high is not None
        missed += not found.low <= one.measured <= found.high
    count = len(known())
    chance = sum(math.comb(count, k) * 0.1**k * 0.9 ** (count - k) for k in range(missed, count + 1))
    assert chance > 0.05, f"{missed} of {count} outside"


def test_few_readings_leave_more_room_than_many() -> None:
    some = [Reading("estimate", 2.0, 2.5)]
    widths = [width("estimate", [], some * count) for count in range(1, LEAST_READINGS + 1)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(FEW ** (1 - 1 / LEAST_READINGS) * widths[-1])
    assert width("estimate", [], []) > 1.0


def test_readings_of_the_same_device_come_first() -> None:
    close = [Reading("simulated", 2.0, 2.1, device="cuda")] * LEAST_READINGS
    far = [Reading("simulated", 2.0, 4.0, device="cpu")] * LEAST_READINGS
    here = width("simulated", [], [*close, *far], "cuda")
    assert here == pytest.approx(close[0].error)
    assert width("simulated", [], [*close, *far], "cpu") == pytest.approx(far[0].error)
    # A trial that nothing is known of is as good as what it replaces.
    assert width("probed", [], [*close, *far], "cuda") == here


def test_measurements_here_make_it_as_wide_as_they_need_it() -> None:
    draw = random.Random(5)

    def past(spread: float) -> list[Miss]:
        return [Miss("simulated", 2.0, 2.0 * math.exp(draw.gauss(0, spread))) for _ in range(200)]

    close, far = width("simulated", past(0.05)), width("simulated", past(0.5))
    assert close == pytest.approx(1.645 * 0.05 / scale(2.0), rel=0.3)
    assert far > 5 * close


def test_a_few_measurements_widen_it_and_do_not_narrow_it_yet() -> None:
    exact = [Miss("simulated", 2.0, 2.0)] * (ENOUGH // 2)
    assert width("simulated", [Miss("simulated", 2.0, 20.0)] * 2) > width("simulated", [])
    assert width("simulated", exact) > 0.1


def test_a_bound_may_gain_nothing_and_is_less_certain_than_a_replay() -> None:
    bound = with_bounds(predicted(3.0, "bound"), [], device="cuda")
    replayed = with_bounds(predicted(3.0), [], device="cuda")
    assert bound.low is not None
    assert bound.low <= 1.0
    assert bound.high is not None
    assert replayed.high is not None
    assert bound.high > replayed.high
