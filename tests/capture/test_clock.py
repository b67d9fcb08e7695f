"""Time that a target has, and time that it waits for its turn."""

from __future__ import annotations

import pytest

from warpline.capture import clock
from warpline.capture.clock import Clock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: time[0])
    return time


def test_a_wait_is_not_the_targets_own_time_and_has_a_limit(now: list[float]) -> None:
    one = Clock(10.0, 60.0)
    now[0] += 8
    one.at("starting", "held")
    now[0] += 59
    assert not one.late
    now[0] += 2
    assert one.late


def test_the_import_and_what_comes_after_the_first_turn_have_a_limit_each(now: list[float]) -> None:
    one = Clock(10.0, 60.0)
    now[0] += 9
    one.at("starting", "held")
    one.at("held", "starting")
    now[0] += 9
    assert not one.late
    now[0] += 2
    assert one.late


def test_slices_share_one_limit(now: list[float]) -> None:
    one = Clock(10.0, 60.0)
    for _ in range(3):
        now[0] += 3
        one.at("timing", "resting")
        now[0] += 30
        assert not one.late
        one.at("resting", "timing")
    now[0] += 2
    assert one.late


def test_without_a_limit_it_is_never_late(now: list[float]) -> None:
    one = Clock(None, None)
    now[0] += 10**6
    assert not one.late
    one.end_within(5.0)
    now[0] += 6
    assert one.late
