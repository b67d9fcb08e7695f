"""Only findings that gain: one gate for all rules."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from warpline.diagnosis.gate import ALWAYS, LEAST, least_percent, left_out, within_evidence
from warpline.model.report import Evidence, Finding, SourceLine

FINDING = Finding(
    "id", "sync-in-step", "hint", "/p/train.py", 18, SourceLine("/p/train.py", 18), "Waits.",
    (Evidence("wait", 2.0, "ms"), Evidence("idle", 3.0, "ms"), Evidence("share", 50.0, "percent of step")),
)  # fmt: skip


def test_a_steady_window_asks_for_one_percent() -> None:
    assert least_percent([10_000_000, 10_001_000] * 50) == LEAST


def test_noise_asks_for_more() -> None:
    """Half the 95 % interval of the mean, by arithmetic: 1.96 x 20 % / sqrt(100) = 3.92 %."""
    source = random.Random(0)
    timed = [round(1e7 * source.gauss(1, 0.2)) for _ in range(100)]
    assert least_percent(timed) == pytest.approx(3.92, rel=0.25)


def test_a_few_slow_steps_hide_nothing() -> None:
    assert least_percent([10_000_000] * 95 + [500_000_000] * 5) == LEAST


def test_a_busy_machine_hides_no_large_gain() -> None:
    source = random.Random(0)
    assert least_percent([round(1e9 * source.uniform(0.2, 2)) for _ in range(5)]) == ALWAYS


def test_too_few_steps_say_nothing_about_noise() -> None:
    assert least_percent([10, 20]) == LEAST


def test_no_promise_beyond_the_evidence() -> None:
    assert within_evidence(FINDING, 10.0) == 5.0
    assert within_evidence(FINDING, 4.0) == 0.0


def test_no_promise_beyond_what_is_lost_at_most() -> None:
    """The wait in a framework's line is short, and the device idle for other reasons."""
    most = replace(FINDING, evidence=(*FINDING.evidence, Evidence("at most lost", 0.9, "percent of step")))
    assert within_evidence(most, 10.0) == pytest.approx(9.91)


def test_what_is_left_out_is_one_line() -> None:
    assert left_out([]) == ""
    assert left_out([FINDING, FINDING]).startswith("2 findings not shown")
    assert "sync-in-step at train.py:18" in left_out([FINDING])
