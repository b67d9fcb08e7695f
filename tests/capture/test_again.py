"""How the steps of a short script are shared out: pure functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warpline.capture.again import (
    LEAST_BOUNDARIES,
    RUNS,
    next_try,
    only_timed,
    second_try,
    shared_out,
)
from warpline.capture.outcome import Outcome
from warpline.wire.control import Purpose, Windows
from warpline.wire.messages import Ended
from warpline.wire.run import Request


def used(windows: Windows) -> int:
    """Steps that the windows take."""
    more = 2 * windows.survey + windows.survey_first + windows.rehearse + 2 * windows.look
    more += windows.sampled or 0
    return (windows.warmup or 0) + (windows.timed or 0) + windows.captured + more


@pytest.mark.parametrize("steps", [*range(LEAST_BOUNDARIES - 1, 60), 120])
def test_no_step_is_left_over_or_counted_twice(steps: int) -> None:
    windows = shared_out(steps, 5)
    assert used(windows) == steps
    assert windows.timed is not None
    assert windows.timed >= 1
    assert 1 <= windows.captured <= 5
    timed = only_timed(windows)
    assert (timed.warmup or 0) + (timed.timed or 0) == steps
    assert not timed.survey_first


def test_what_comes_first_where_steps_are_few() -> None:
    assert not shared_out(2, 5).survey_first
    assert shared_out(3, 5).survey_first
    assert not shared_out(3, 5).rehearse
    assert shared_out(4, 5).rehearse
    assert [shared_out(steps, 5).survey for steps in (39, 40)] == [False, True]  # after the timing
    assert shared_out(30, 5).look
    assert shared_out(30, 5).captured == 5
    assert [shared_out(steps, 5).warmup for steps in (7, 8, 30, 300)] == [0, 1, 3, 10]


def test_a_beat_that_is_known_makes_the_first_steps_usable() -> None:
    ended = Ended(steps=3, boundaries=2, clean=True, torch=True, whole_ns=10**9)
    purpose, _, notes = second_try(Request(), Outcome(ended=ended))
    assert purpose is Purpose.WHOLE
    assert "including what only its first step does" in notes[0]
    purpose, windows, _ = second_try(Request(), Outcome(ended=replace(ended, beat="optimizer")))
    assert purpose is Purpose.PROFILE
    assert (windows.timed, windows.captured, windows.beat) == (1, 1, "optimizer")
    assert windows.muted


def test_a_script_that_makes_fewer_steps_each_time_is_measured_as_a_whole_at_last() -> None:
    ended = Ended(steps=41, boundaries=40, clean=True, torch=True, whole_ns=10**9)
    purpose, windows, notes = next_try(Request(), Outcome(ended=ended), 2)
    assert purpose is Purpose.PROFILE
    assert used(windows) == 20
    assert "third time" in notes[0] and "41 steps" in notes[0]
    few = next_try(Request(), Outcome(ended=replace(ended, steps=4, boundaries=3)), 2)
    last = next_try(Request(), Outcome(ended=ended), RUNS - 1)
    for purpose, windows, notes in (few, last):
        assert (purpose, windows.whole_ns) == (Purpose.WHOLE, (10**9,))
        assert "measured as a whole" in notes[0]
