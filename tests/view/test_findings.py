"""What is said of a prediction."""

import pytest

from warpline.model.report import Finding, Predicted, SourceLine
from warpline.view.findings import gains


def said(predicted: Predicted) -> str:
    found = Finding("a", "launch-bound", "warning", "t.py", 1, SourceLine("t.py", 1), "m", (), predicted)
    (line,) = gains(found)
    return line


def test_what_may_as_well_be_a_loss_is_to_be_measured() -> None:
    line = said(Predicted(8.0, 1.25, "estimate", 0.8, 1.9))
    assert line.endswith("(estimated, 0.80 to 1.90: measure it)")


@pytest.mark.parametrize(
    "one", [Predicted(8.0, 1.25, "estimate", 1.1, 1.4), Predicted(8.0, 1.25, "simulated", 0.9, 1.5)]
)
def test_other_predictions_are_not(one: Predicted) -> None:
    assert "measure it" not in said(one)
