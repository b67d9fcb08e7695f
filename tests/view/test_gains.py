"""What the end of a summary says of the best gain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lsp.folder import finding
from warpline.model.report import Finding, Measured, Predicted
from warpline.view import gains

ONE = finding(Path("train.py"), 1)
SIMULATED, BOUND = Predicted(10.0, 2.5, "simulated"), Predicted(10.0, 3.5, "bound")
UNSURE = Predicted(15.0, 1.66, "estimate", 0.66, 4.15)
MEASURED, NONE = Measured(2.6, 2.5, 2.7, None, None), Measured(1.1, 0.9, 1.3, None, None)


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([], ""),
        ([replace(ONE, predicted=Predicted(10.0, 1.004, "simulated"))], ""),
        ([replace(ONE, predicted=SIMULATED)], ", best 2.50x predicted"),
        ([replace(ONE, predicted=SIMULATED, measured=MEASURED)], ", best 2.60x"),
        ([replace(ONE, predicted=SIMULATED), replace(ONE, predicted=BOUND)], ", best about 3.50x predicted"),
        ([replace(ONE, predicted=BOUND, measured=NONE)], ""),
        ([replace(ONE, predicted=UNSURE)], ", best perhaps 1.66x, no gain to 4.15x: measure it"),
    ],
    ids=[
        "none",
        "too little",
        "predicted",
        "measured",
        "a bound",
        "measured, and no gain",
        "it may gain nothing",
    ],
)
def test_the_best_gain(findings: list[Finding], said: str) -> None:
    assert gains.best(findings) == said
