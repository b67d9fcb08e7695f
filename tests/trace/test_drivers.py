"""An executor's thread that makes the steps: its lines are the main thread's while that waits for it."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Records, no_records
from warpline.trace.drivers import with_drivers

MAIN, POOL, OTHER = 0, 1, 2
SUBMIT, RESULT, STEP, SLEEP = 1, 2, 3, 4
NONE = no_records()


def made(rows: list[tuple[int, int, int, bool]]) -> Records:
    """Of (thread, time, location, again)."""
    thread, time, location, again = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Records(
        time,
        thread,
        location,
        np.searchsorted(thread, np.arange(4)),
        again.astype(bool),
        np.zeros(len(time), bool),
    )


ROWS = [
    (MAIN, 10, SUBMIT, False), (MAIN, 20, RESULT, False), (MAIN, 60, SUBMIT, False),
    (POOL, 30, STEP, False), (POOL, 35, SLEEP, False), (POOL, 50, 0, True),
]  # fmt: skip


def test_its_lines_and_then_the_main_threads_again() -> None:
    both = with_drivers(made(ROWS), NONE, MAIN, [POOL])[0]
    own = slice(both.first[MAIN], both.first[MAIN + 1])
    assert list(zip(both.time_ns[own].tolist(), both.location[own].tolist(), strict=True)) == [
        (10, SUBMIT), (20, RESULT), (30, STEP), (35, SLEEP), (50, RESULT), (60, SUBMIT),
    ]  # fmt: skip
    assert both.again[own].tolist() == [False, False, False, False, True, False]
    of_pool = slice(both.first[POOL], both.first[POOL + 1])
    assert both.location[of_pool].tolist() == [STEP, SLEEP, 0]
    assert both.again[of_pool].all(), "a line that began counts once"


def test_a_wait_that_begins_just_after_the_step_does() -> None:
    rows = [(MAIN, 31, RESULT, False), *ROWS]
    both = with_drivers(made(rows), NONE, MAIN, [POOL], only_waits=True)[0]
    own = slice(both.first[MAIN], both.first[MAIN + 1])
    told = list(
        zip(both.time_ns[own].tolist(), both.location[own].tolist(), both.again[own].tolist(), strict=True)
    )
    assert told[2:6] == [(30, STEP, False), (31, RESULT, False), (31, STEP, True), (35, SLEEP, False)]


def test_a_request_that_begins_while_another_one_ends() -> None:
    """A server sends an answer while the next request's thread runs: the line that began last applies."""
    rows = [
        (MAIN, 0, RESULT, False),
        (POOL, 10, STEP, False), (POOL, 20, SLEEP, False), (POOL, 40, 0, True),
        (OTHER, 30, STEP, False), (OTHER, 50, 0, True),
    ]  # fmt: skip
    library = made([(POOL, 25, 7, False), (OTHER, 35, 8, False), (POOL, 36, 9, False)])
    both, inside = with_drivers(made(rows), library, MAIN, [POOL, OTHER], only_waits=True)
    own = slice(both.first[MAIN], both.first[MAIN + 1])
    assert list(zip(both.time_ns[own].tolist(), both.location[own].tolist(), strict=True)) == [
        (0, RESULT), (10, STEP), (20, SLEEP), (30, STEP), (40, STEP), (50, RESULT),
    ]  # fmt: skip
    own = slice(inside.first[MAIN], inside.first[MAIN + 1])
    assert inside.location[own].tolist() == [7, 8], "what the library does for a line that does not apply"
    assert not inside.again[own].any()
    assert inside.again[inside.first[POOL] :].tolist() == [True, False, True], "each call counts once"
