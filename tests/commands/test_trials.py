"""The table of trials, on a screen that is as narrow as screens get."""

from __future__ import annotations

import math

import pytest

from warpline.commands import trials
from warpline.measure.candidate import Candidate
from warpline.measure.contest import Outcome
from warpline.measure.results import results
from warpline.measure.verdict import NOT_TIMED, ONCE, UNPROVEN
from warpline.model.report import Measured


@pytest.mark.parametrize(
    ("proposed", "said"), [(True, "No fix was timed"), (False, "There is no fix to try.")]
)
def test_fixes_that_there_was_no_time_for_are_not_said_to_be_missing(
    proposed: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trials.show([], results([], None, lambda file: ""), {}, [], proposed=proposed)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        ((NOT_TIMED, NOT_TIMED), "No fix was timed."),
        ((NOT_TIMED, "no measurable gain"), "No measurable gain so far."),
        ((UNPROVEN,), "No measurable gain so far."),
        (("no measurable gain", "train.py failed with ValueError"), "No change has a measurable gain."),
    ],
)
def test_what_was_not_decided_is_not_said_to_gain_nothing(
    reasons: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [Outcome(Candidate((one,), one, {}), 20.0, None, None, False, one, 0) for one in reasons]
    notes = trials.ending(["budget"], 20.0, "all rounds take about 2 min 10 s here")
    trials.show(outcomes, results(outcomes, None, lambda file: ""), {}, notes)
    *_, summary, note = capsys.readouterr().out.splitlines()
    assert summary == said
    assert note == (
        "Note: the time budget of 20 s (--budget) ended first: all rounds take about 2 min 10 s here"
    )


def test_names_stay_whole_and_numbers_below_their_headings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    two = Candidate(("a",), "sync-every-accumulation-step + loader-without-workers", {"/train.py": ""})
    failed = Candidate(("b",), "graph-break", {})
    outcomes = [
        Outcome(two, 20.0, 10.0, Measured(2.0, 1.9, 2.1, 0.001, 1.0), True, "faster", 5),
        Outcome(failed, 20.0, None, None, False, "train.py failed with ValueError", 1),
    ]
    trials.show(outcomes, results(outcomes, None, lambda file: ""), {two.key: 1.8}, ["all of it"])
    _, headings, title, numbers, *rest = capsys.readouterr().out.splitlines()
    assert title == "sync-every-accumulation-step + loader-without-workers: kept: faster"
    for heading, value in (("step ms", "10.0"), ("95 % interval", "1.90 to 2.10"), ("memory", "1.00")):
        end = headings.index(heading) + len(heading)
        assert numbers[:end].endswith(value)
    assert rest == [
        "graph-break: train.py failed with ValueError",
        "No change has a measurable gain.",
        "Note: all of it",
    ]


def test_one_round_is_no_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    candidate = Candidate(("a",), "fp32-matmul", {})
    seen = Measured(1.6, 0.0, math.inf, 0.001, 1.0)
    outcomes = [Outcome(candidate, 20.0, 12.5, seen, False, ONCE, 1)]
    found = results(outcomes, None, lambda file: "")
    (one,) = found.candidates
    assert (one.speedup, one.low, one.high, one.step_ms, one.reason) == (None, None, None, 12.5, ONCE)
    trials.show(outcomes, found, {candidate.key: 1.8}, [])
    shown = capsys.readouterr().out
    assert "1.60" not in shown
    assert "1.80" in shown
