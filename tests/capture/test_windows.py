"""The lengths of the windows: pure functions."""

from __future__ import annotations

from warpline.capture.runner import windows

MS = 1_000_000


def test_warm_up_ends_when_times_have_settled() -> None:
    assert not windows.settled([900 * MS, 10 * MS], compiling=False), "three are the least"
    assert not windows.settled([900 * MS, 10 * MS, 14 * MS, 13 * MS], compiling=False)
    assert windows.settled([900 * MS, 10 * MS, 10 * MS, 11 * MS], compiling=False)
    assert not windows.settled([900 * MS, 10 * MS, 10 * MS, 11 * MS], compiling=True)


def test_warm_up_has_a_limit() -> None:
    rising = [10 * MS + at * 5 * MS for at in range(windows.WARMUP_MOST)]
    assert not windows.settled(rising[:-1], compiling=False)
    assert windows.settled(rising, compiling=False)
    assert windows.settled([4000 * MS, 6000 * MS, 8000 * MS], compiling=False), "long enough was waited"


def test_the_timing_window_is_long_enough_and_no_longer() -> None:
    assert windows.timed_steps(0) == 400
    assert windows.timed_steps(MS) == 400
    assert windows.timed_steps(20 * MS) == 25
    assert windows.timed_steps(100 * MS) == 10
    assert windows.timed_steps(300 * MS) == 6
    assert windows.timed_steps(2000 * MS) == 3
    assert windows.timed_steps(10_000 * MS) == 2


def test_it_grows_when_steps_turned_out_shorter() -> None:
    assert windows.more_timed_steps(10, 20 * MS) > 0
    assert windows.more_timed_steps(10, 400 * MS) == 0
    assert windows.more_timed_steps(400, 20 * MS) == 0


def test_steps_of_many_lines_are_captured_less_often() -> None:
    assert windows.captured_steps(5, 1000) == 5
    assert windows.captured_steps(5, 10_000_000) == 2
    assert windows.captured_steps(5, 10**9) == 1
