"""An executor's thread that makes the steps: its lines are the main thread's while that waits for it."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Records
from warpline.trace.drivers import in_turn, with_drivers

MAIN, POOL = 0, 1
SUBMIT, RESULT, STEP, SLEEP = 1, 2, 3, 4


def made(rows: list[tuple[int, int, int, bool]]) -> Records:
    """Of (thread, time, location, again)."""
    thread, time, location, again = (np.array(column) for column in zip(*sorted(rows), strict=True))
    return Records(time, thread, location, np.searchsorted(thread, np.arange(3)), again.astype(bool))


ROWS = [
    (MAIN, 10, SUBMIT, False), (MAIN, 20, RESULT, False), (MAIN, 60, SUBMIT, False),
    (POOL, 30, STEP, False), (POOL, 35, SLEEP, False), (POOL, 50, 0, True),
]  # fmt: skip


def test_its_lines_and_then_the_main_threads_again() -> None:
    both = with_drivers(made(ROWS), MAIN, [POOL])
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
    both = with_drivers(made(rows), MAIN, [POOL], only_waits=True)
    own = slice(both.first[MAIN], both.first[MAIN + 1])
    told = list(
        zip(both.time_ns[own].tolist(), both.location[own].tolist(), both.again[own].tolist(), strict=True)
    )
    assert told[2:6] == [(30, STEP, False), (31, RESULT, False), (31, STEP, True), (35, SLEEP, False)]


def test_where_the_main_thread_makes_steps_itself_nothing_changes() -> None:
    records = made(ROWS)
    assert with_drivers(records, MAIN, [POOL, MAIN]) is records
    assert with_drivers(records, MAIN, []) is records


def test_threads_that_take_turns_and_threads_at_once() -> None:
    def steps(one_ns: int, other_ns: int) -> Records:
        spans = [(MAIN, one_ns, 20), (MAIN, one_ns + 100, 20), (POOL, other_ns, 40)]
        return made(
            [(thread, at, STEP, False) for thread, at, _ in spans]
            + [(thread, at + took, 0, True) for thread, at, took in spans]
        )

    assert in_turn(steps(0, 30), [MAIN, POOL])
    assert in_turn(steps(0, 19), [MAIN, POOL]), "the next one begins before a step has quite ended"
    assert not in_turn(steps(0, 5), [MAIN, POOL])
    assert not in_turn(steps(0, 30), [MAIN]), "one thread's steps stand at that thread"
