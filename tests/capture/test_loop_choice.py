"""Which loop's turns are the steps, from how the loops turned."""

from __future__ import annotations

import pytest

from warpline.capture.runner.steps.choice import OFTEN, Turned, choose
from warpline.wire.loops import Loop

MS = 1_000_000
WINDOW = 500 * MS


def turned(turn_ms: float, turns: int, within: int | None = None, spread: float = 1.0) -> Turned:
    """A loop inside loop ``within``; every second turn takes ``spread`` times as long."""
    durations = [int(turn_ms * MS * (spread if at % 2 else 1)) for at in range(turns)]
    total = sum(durations)
    return Turned(Loop("/sim.py", turns), durations, total_ns=total, within={within: total})


def chosen(*seen: Turned, watched_ms: float | None = None) -> int | None:
    whole = sum(one.total_ns for one in seen if None in one.within)
    return choose(seen, whole if watched_ms is None else int(watched_ms * MS), WINDOW)[1]


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ([turned(20, 60), turned(1, 1200, within=0)], 0),
        ([turned(1000, 30), turned(5, 6000, within=0)], 1),
        ([turned(300, 3), turned(5, 180, within=0), turned(1, 900, within=1)], 1),
        ([turned(20, 60, spread=9), turned(1, 6000, within=0)], 1),
        ([turned(1, 300), turned(2, 900)], 1),
        ([turned(4000, 5)], 0),
        ([turned(4000, 5), turned(2, 500, within=0)], 0),
        ([turned(0.01, 9)], None),
        ([turned(2000, 2)], None),
    ],
    ids=[
        "outermost",
        "too long for the window",
        "too few turns",
        "turns that differ",
        "of two phases the longer",
        "slow, and nothing inside",
        "slow, and what is inside takes little of it",
        "short and few",
        "two turns",
    ],
)
def test_choice(seen: list[Turned], wanted: int | None) -> None:
    assert chosen(*seen) == wanted


def test_a_loop_that_takes_little_of_the_time_is_no_step() -> None:
    assert chosen(turned(1, OFTEN), watched_ms=1000) is None
    assert chosen(turned(1, OFTEN), watched_ms=100) == 0
