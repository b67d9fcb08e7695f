"""A finding's change is the one that its first offered fix makes."""

from __future__ import annotations

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.model.change import MatmulRate
from warpline.model.report import Edit, Fix
from warpline.rulekit import Context
from warpline.syntax.edits import Refused

LOWER, ROUNDED = MatmulRate("bf16", ((FILE, 1),)), MatmulRate("tf32", ((FILE, 1),))


def _refuses() -> Fix:
    raise Refused("it may not")


def _edits() -> Fix:
    return Fix("x", "safe", (Edit(FILE, (1, 0), (1, 0), "pass\n"),))


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        (_edits, _edits, LOWER),
        (_edits, _refuses, LOWER),
        (_refuses, _edits, ROUNDED),
        (_refuses, _refuses, LOWER),  # what the reader may do by hand
    ],
)
def test_a_refused_fix_is_not_what_is_predicted(first: object, second: object, change: MatmulRate) -> None:
    example = read_example("y = x @ w\n")
    draft = Context(example.profile, texts(example)).draft(
        (FILE, 1),
        "Slow.",
        {},
        cost_ms=1.0,
        change=LOWER,
        alternative=ROUNDED,
        fixes=[first, second],  # type: ignore[list-item]
    )
    assert draft.change == change
