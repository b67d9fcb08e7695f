"""Numbers as words: enough digits and no more, never zero for what is not."""

from __future__ import annotations

import pytest

from warpline.view import units


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 ms"),
        (0.0004, "<0.001 ms"),
        (0.0123, "0.012 ms"),
        (0.38, "0.38 ms"),
        (9.94, "9.94 ms"),
        (12.4, "12.4 ms"),
        (99.96, "100 ms"),
        (1234.5, "1234 ms"),
        (12_345, "12.3 s"),
    ],
)
def test_times(value: float, words: str) -> None:
    assert units.ms(value) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(0, "0 %"), (0.0004, "<0.1 %"), (0.012, "1.2 %"), (0.38, "38 %"), (0.9997, "99.9 %"), (1, "100 %")],
)
def test_shares(ratio: float, words: str) -> None:
    assert units.percent(ratio) == words


def test_sizes_counts_rates_and_ratios() -> None:
    assert units.size(512) == "512 B"
    assert units.size(2 * 2**30) == "2.0 GiB"
    assert units.count(3.0) == "3"
    assert units.count(2.5) == "2.5"
    assert units.rate(6.2e13, "FLOP/s") == "62.0 TFLOP/s"
    assert units.speedup(2.6) == "2.6 times"
    assert units.speedup(1.04) == "1.04 times"


def test_the_bounds_of_a_gain_have_its_digits() -> None:
    assert units.interval(1.094, 1.118) == "1.09 to 1.12"
    assert f"{units.gain(12.34)}, {units.interval(9.4, 13.21)}" == "12.3x, 9.40 to 13.2"


def test_a_gain_is_measured_where_its_interval_lies_above_1() -> None:
    assert units.measured(1.1, 1.09, 1.12) == "1.10x (1.09 to 1.12)"
    assert units.measured(1.59, 0.04, 67.8) == "no measurable gain (0.04 to 67.8)"
    assert units.measured(0.78, 0.71, 0.86) == "28 % slower (0.71 to 0.86)"


def test_evidence_in_its_own_unit() -> None:
    assert units.evidence(61.2, "percent of step") == "61 % of step"
    assert units.evidence(2**20, "bytes") == "1.0 MiB"
    assert units.evidence(12.4, "ms") == "12.4 ms"
    assert units.evidence(8, "workers") == "8 workers"
