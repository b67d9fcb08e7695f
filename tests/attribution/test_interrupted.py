"""Kernels that other processes interrupted, in captures that contradict the timed steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import KinetoRun, approx, at_line, closed

STEP_US = 1000


def recorded(folder: Path, lengths: list[list[float]], timed_us: float) -> KinetoRun:
    """Steps of 1000 us: at line 10 Python for 350 us, at line 11 calls of one kernel that take so long."""
    run = KinetoRun(folder, STEP_US * len(lengths), steps=len(lengths), timed_us=timed_us)
    for step, kernels in enumerate(lengths):
        at = STEP_US * step
        run.line(at, 10)
        run.line(at + 350, 11)
        begun = at + 400.0
        for number, length in enumerate(kernels):
            run.kernel(begun, length, launched=at + 360 + 10 * number)
            begun += length
    return run


def test_what_others_took_shrinks_like_idle_time(tmp_path: Path) -> None:
    """The kernel takes 300 us, and twice that where it was interrupted; a step takes 450 us while nothing is
    recorded. So 150 us are left for 200 us of interruptions and 500 us in which the device is idle."""
    profile = recorded(tmp_path, [[300], [600], [600]], timed_us=450).profile()
    assert at_line(profile, 11).device_ms == approx(0.3 + 0.2 * 150 / 700)
    assert profile.totals["idle_ms"] == approx(0.5 * 150 / 700)
    assert at_line(profile, 10).idle_ms > 0.05
    assert profile.steps.device_busy_percent == pytest.approx(100 * (0.3 + 0.2 * 150 / 700) / 0.45)
    assert closed(profile) == approx(0.45)
    (note,) = [note for note in profile.notes if "busy for longer" in note]
    assert "; 0.16 ms a step by which kernels took longer" in note


@pytest.mark.parametrize(
    ("lengths", "device_ms"),
    [
        ([[300], [600], [600]], 0.5),  # there is room for all of it: the data may be different, too
        ([[300, 200], [300, 100]], 0.45),
    ],
)
def test_where_there_is_room_for_all_nothing_changes(
    tmp_path: Path, lengths: list[list[float]], device_ms: float
) -> None:
    profile = recorded(tmp_path, lengths, timed_us=700).profile()
    assert at_line(profile, 11).device_ms == approx(device_ms)


@pytest.mark.parametrize(
    "lengths",
    [
        [[500], [500]],  # a slower clock is the same in all steps
        [[200, 300], [100, 100, 300]],  # another number of kernels
        [[500]],
    ],
)
def test_without_the_same_kernel_to_compare_all_shrink_alike(
    tmp_path: Path, lengths: list[list[float]]
) -> None:
    profile = recorded(tmp_path, lengths, timed_us=400).profile()
    assert at_line(profile, 11).device_ms == approx(0.5)
    assert profile.totals["idle_ms"] == approx(0)
    assert closed(profile) == approx(0.4)


def test_kernels_are_compared_with_those_at_their_place(tmp_path: Path) -> None:
    """Both kernels of a step have one name; the second is longer in every step."""
    run = KinetoRun(tmp_path, 2000, steps=2, timed_us=450)
    for at in (0, 1000):
        run.line(at, 10)
        run.kernel(at + 400, 100, launched=at + 10)
        run.kernel(at + 500, 450 if at else 300, launched=at + 20)
    assert at_line(run.profile(), 10).device_ms == approx(0.4 + 0.075 * 50 / 600)
