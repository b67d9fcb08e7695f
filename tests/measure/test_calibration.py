"""How wide a prediction's interval is."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lsp.folder import finding
from warpline.measure import calibration
from warpline.measure.calibration import (
    ENOUGH,
    REACH,
    Class,
    Miss,
    Reading,
    bounded,
    known,
    reach,
    scale,
    typical,
    width,
    with_bounds,
)
from warpline.model.report import CROWDED, Evidence, Predicted

LOADER = Class.of("loader-without-workers", "cpu", "simulated")


def predicted(speedup: float, basis: str = "simulated") -> Predicted:
    return Predicted(10.0 / speedup, speedup, basis)  # type: ignore[arg-type]


def test_it_holds_the_prediction_and_is_wider_for_larger_gains() -> None:
    widths = []
    for speedup in (1.02, 1.3, 2.0):
        found = with_bounds(predicted(speedup), LOADER)
        assert found.low is not None
        assert found.high is not None
        assert found.low < speedup < found.high
        widths.append(found.high / found.low)
    assert widths == sorted(widths)


def test_nine_of_ten_lie_inside_the_intervals_that_other_rounds_make() -> None:
    """As far as so many readings can tell: more misses than that have a chance of 5 % at one in ten."""

    def round_of(one: Reading) -> str:
        return one.script.rpartition("/")[0]

    missed = 0
    for name in set(map(round_of, known())):
        others = [one for one in known() if round_of(one) != name]
        far = reach(others)
        for one in known():
            if round_of(one) == name:
                said = predicted(one.predicted, one.basis)
                found = with_bounds(said, one.alike, before=others, far=far)
                assert found.low is not None
                assert found.high is not None
                missed += not found.low <= one.measured <= found.high
    count = len(known())
    chance = sum(math.comb(count, k) * 0.1**k * 0.9 ** (count - k) for k in range(missed, count + 1))
    assert chance > 0.05, f"{missed} of {count} outside"


def test_the_figures_are_those_of_the_readings() -> None:
    """Whoever adds readings runs ``benchmarks/intervals.py --fit --write``."""
    assert reach(known()) == pytest.approx(REACH, abs=0.01)


def test_a_rule_has_the_errors_of_its_own_readings_as_far_as_there_are_some() -> None:
    def errors(rule: str, error: float, count: int) -> list[Reading]:
        return [Reading("simulated", 2.0, 2.0 * math.exp(error * scale(2.0)), rule=rule)] * count

    def usually(rule: str, readings: list[Reading], device: str = "cuda") -> float:
        return typical(Class.of(rule, device, "simulated"), readings)

    exact, wild = errors("full-sort", 0.1, 40), errors("launch-bound", 0.4, 40)
    usual = math.sqrt(0.1 * 0.4)
    every = [*exact, *wild]
    assert 0.1 < usually("full-sort", every) < usual < usually("launch-bound", every) < 0.4
    # Nothing is known of these two: they are as others of their family.
    assert 0.1 < usually("sync-in-step", every) < usual < usually("graph-break", every) < 0.4
    # Nothing is known of this device.
    assert usually("full-sort", every, "cpu") == pytest.approx(usual)
    # A few readings draw a rule away from its family, as far as they go.
    few, many = (usually("full-sort", [*errors("full-sort", 0.01, n), *wild]) for n in (1, 40))
    assert many < few < 0.4
    assert usually("sync-in-step", errors("full-sort", 0.1, 1)) == pytest.approx(0.1)


def test_a_wait_for_batches_is_all_that_can_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(
        finding(Path("train.py"), 1, rule="loader-without-workers"),
        evidence=(Evidence("exposed wait", 6.0, "ms"),),
        predicted=Predicted(5.0, 2.0, "simulated"),
    )
    monkeypatch.setattr(calibration, "known", lambda: [Reading("simulated", 2.0, 6.0, rule=one.rule)])
    (found,) = bounded([one], [], "cpu")
    (other,) = bounded([replace(one, rule="sync-in-step")], [], "cpu")
    assert found.predicted is not None
    assert other.predicted is not None
    assert found.predicted.low == other.predicted.low
    # Of 10 ms, 6 are the wait.
    half = width(LOADER, "simulated") * scale(1.0)
    assert found.predicted.high == pytest.approx(2.5 * math.exp(half))
    assert other.predicted.high is not None
    assert other.predicted.high > found.predicted.high


def test_beside_processes_that_have_the_cores_it_may_gain_as_much_more() -> None:
    one = replace(
        finding(Path("train.py"), 1, rule="loader-without-workers"),
        evidence=(Evidence("exposed wait", 9.0, "ms"), Evidence(CROWDED, 80.0, "percent of step")),
        predicted=Predicted(7.0, 1.5, "simulated"),
    )
    (found,) = bounded([one], [], "cpu")
    (alone,) = bounded([replace(one, evidence=one.evidence[:1])], [], "cpu")
    assert found.predicted is not None and alone.predicted is not None
    assert found.predicted.low == alone.predicted.low
    assert found.predicted.high == pytest.approx(7.5)  # 1.5 of the fifth that is left
    assert alone.predicted.high is not None and alone.predicted.high < 7.5


def test_measurements_here_make_it_as_wide_as_they_need_it() -> None:
    draw = random.Random(5)

    def past(spread: float) -> list[Miss]:
        return [Miss("simulated", 2.0, 2.0 * math.exp(draw.gauss(0, spread))) for _ in range(200)]

    close, far = width(LOADER, "simulated", past(0.05)), width(LOADER, "simulated", past(0.5))
    assert close == pytest.approx(1.645 * 0.05 / scale(2.0), rel=0.3)
    assert far > 5 * close


def test_a_few_measurements_widen_it_and_do_not_narrow_it_yet() -> None:
    exact = [Miss("simulated", 2.0, 2.0)] * (ENOUGH // 2)
    assert width(LOADER, "simulated", [Miss("simulated", 2.0, 20.0)] * 2) > width(LOADER, "simulated")
    assert width(LOADER, "simulated", exact) > 0.1
