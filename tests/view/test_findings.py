"""What is said of a prediction."""

import pytest

from warpline.model.report import Finding, Predicted, SourceLine
from warpline.view.findings import gains


def said(predicted: Predicted) -> str:
    found = Finding("a", "launch-bound", "warning", "t.py", 1, SourceLine("t.py", 1), "m", (), predicted)
    (line,) = gains(found)
    return line


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            Predicted(8.0, 1.25, "estimate", 0.8, 1.9),
            "perhaps 1.25x (estimated; no gain to 1.90x): measure it",
        ),
        (Predicted(8.0, 4.0, "bound", 1.9, 8.1), "about 4.00x (a bound; 1.90x to 8.10x): measure it"),
        (Predicted(8.0, 1.25, "simulated", 1.1, 1.4), "8.00 ms a step, 1.25x (simulated)"),
    ],
    ids=["it may gain nothing", "it may gain a little or much", "it is told how much it gains"],
)
def test_an_interval_is_shown_where_the_gain_is_not_known_well(one: Predicted, words: str) -> None:
    assert said(one) == f"predicted: {words}"
