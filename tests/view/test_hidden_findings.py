"""Findings that would gain nothing now: one line for all of them, in words that promise nothing."""

from dataclasses import replace

import pytest

from warpline.model.report import Finding, Measured, Place, Predicted
from warpline.view import findings
from warpline.view.hover import gain

FINDING = Finding(
    "id", "fp32-matmul", "hint", "/p/train.py", 18, Place("/p/train.py", 18), "Slow.", (),
    Predicted(10.0, 1.002, "simulated"),
)  # fmt: skip
NAMES = {"/p/train.py": "train.py"}


def test_they_share_one_line_by_rule() -> None:
    found = [FINDING, replace(FINDING, line=20), replace(FINDING, rule="small-grid", line=3)]
    assert findings.hidden(found, NAMES) == (
        "Would gain nothing now, since something slower hides it: "
        "fp32-matmul at train.py:18, train.py:20; small-grid at train.py:3."
    )
    assert "predicted" not in gain(FINDING) and "nothing now" in gain(FINDING)


@pytest.mark.parametrize(
    "finding",
    [
        replace(FINDING, predicted=Predicted(9.0, 1.11, "simulated")),
        replace(FINDING, predicted=Predicted(10.0, 1.0, "bound")),  # not simulated: not known to be hidden
        replace(FINDING, predicted=None),
        replace(FINDING, measured=Measured(1.5, 1.4, 1.6, None, None)),
    ],
)
def test_what_gains_or_is_not_known_to_gain_nothing_is_told_in_full(finding: Finding) -> None:
    assert not findings.is_hidden(finding)
    assert findings.hidden([finding], NAMES) == ""
