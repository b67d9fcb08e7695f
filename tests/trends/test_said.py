"""What is said of a trend whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable

from warpline.trends.said import notes
from warpline.wire.trend import Trend, Window

MIB = 1 << 20


def trend(
    step_ms: Callable[[int], float] = lambda at: 0.0, held: Callable[[int], float] = lambda at: 0.0
) -> Trend:
    """40 windows, 100 steps apart, of 10 ms and 500 MiB with 1 % of noise, and what the two add to that."""
    chance = random.Random(3)
    windows = []
    for at in range(40):
        step_ns = 1e6 * (10 + chance.gauss(0, 0.1) + step_ms(at))
        memory = int(MIB * (500 + chance.gauss(0, 1) + held(at)))
        between = 1e7 + chance.gauss(0, 1e5) if at else None
        windows.append(Window(100 * at, at * 10**9, (round(step_ns),) * 5, step_ns, memory, between))
    return Trend(100, tuple(windows))


def test_a_steady_run_is_summed_up_and_no_more() -> None:
    assert len(notes(trend())) == 1


def test_drift_is_told_with_its_size() -> None:
    (_, said) = notes(trend(lambda at: 0.05 * at))
    assert said.startswith("steps get slower: by 1")  # 0.05 * 39 of a median of 11 ms: 18 %
    assert "Mann-Kendall, p = " in said


def test_growth_that_goes_on_is_told_as_a_rate() -> None:
    (_, said) = notes(trend(held=lambda at: 10.0 * at))
    assert said.startswith("memory keeps growing: 10")  # 10 MiB in 100 steps: 100 in 1000


def test_growth_that_ends_is_no_leak() -> None:
    assert len(notes(trend(held=lambda at: 20.0 * min(at, 15)))) == 1


def test_a_slow_stretch_is_told_with_its_place() -> None:
    (_, said) = notes(trend(lambda at: 10.0 if at == 17 else 0.0))
    assert "1 of 40 slow" in said
    assert "steps 1700 to 1705" in said


def test_few_windows_are_not_judged() -> None:
    few = Trend(100, trend(float).windows[:7])
    assert len(notes(few)) == 1
    assert "at least 8 windows" in notes(few)[0]
    assert notes(Trend(100)) == ()


def test_a_drift_that_windows_of_five_steps_hide_is_in_the_mean_of_all_steps_between_them() -> None:
    chance = random.Random(11)
    found = [
        Window(100 * at, at * 10**9, (1,) * 5, 1e7 * chance.gauss(1, 0.2), MIB, 1e7 * (1 + at / 1000))
        for at in range(30)
    ]
    said = notes(Trend(100, tuple(found)))
    assert any(note.startswith("steps get slower: by 2.") for note in said)
    assert "by the mean of all steps between two windows" in said[0]
