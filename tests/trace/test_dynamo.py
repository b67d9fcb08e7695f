"""What Dynamo's bytecode does stands at the line that called the compiled function."""

from __future__ import annotations

import numpy as np

from warpline.trace.columns import Records
from warpline.trace.dynamo import at_callers
from warpline.wire.run import Locations

TEXT = """\
import torch
@torch.compile(
    mode="default")
def inner(x):
    return x + 1
def outer(x):
    y = inner(x)
    return y
outer(1)
"""
FILE = "/train.py"
PLACES = [(-1, 0, -1), (0, 9, 0), (0, 6, 1), (0, 2, 2), (0, 6, 0), (0, 5, 2)]
NOWHERE, CALL, OUTER, INNER, DEFINES_OUTER, IN_INNER = range(6)


def moved(*rows: tuple[int, bool]) -> list[tuple[int, bool]]:
    """(location, come back to) of records of one thread, a nanosecond apart."""
    location, again = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    count = len(rows)
    records = Records(
        np.arange(count),
        np.zeros(count, np.int64),
        location,
        np.array([0, count]),
        again,
        np.zeros(count, bool),
    )
    found = at_callers(
        records, Locations((FILE,), ("<module>", "outer", "inner"), PLACES, (1,)), {FILE: TEXT}
    )
    return list(zip(found.location.tolist(), found.again.tolist(), strict=True))


def test_a_compiled_function_that_calls_another() -> None:
    assert moved((CALL, False), (OUTER, False), (INNER, False), (OUTER, True), (CALL, True)) == [
        (CALL, False), (CALL, True), (CALL, True), (CALL, True), (CALL, True),
    ]  # fmt: skip


def test_one_that_falls_back_to_python_in_between() -> None:
    found = moved((CALL, False), (INNER, False), (IN_INNER, False), (INNER, True))
    assert [location for location, _ in found] == [CALL, CALL, IN_INNER, CALL]


def test_a_definition_that_runs_is_left_alone() -> None:
    assert moved((DEFINES_OUTER, False), (IN_INNER, False)) == [(DEFINES_OUTER, False), (IN_INNER, False)]


def test_with_no_line_before_it_it_is_nobodys() -> None:
    assert moved((INNER, False), (IN_INNER, False)) == [(NOWHERE, True), (IN_INNER, False)]
