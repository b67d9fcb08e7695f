"""Which sets of fixes are tried first, and which ones from there on."""

from __future__ import annotations

from dataclasses import replace

from warpline.measure import sets
from warpline.measure.attempt import Chosen
from warpline.measure.proposals import Proposal
from warpline.model.report import Finding, SourceLine


def proposal(name: str, *, later: bool = False) -> Proposal:
    finding = Finding(name, name, "warning", "/train.py", 1, SourceLine("/train.py", 1), "", ())
    return Proposal(finding, None, True, later=later)


WORKERS, NORM = proposal("workers"), proposal("norm")
AUTOCAST, LAYOUT = proposal("autocast", later=True), proposal("layout", later=True)


def said(chosen: Chosen) -> float | None:
    return {(WORKERS,): 2.0, (NORM,): 1.1}.get(chosen, 1.0)


def test_what_gains_only_after_others_is_tried_with_them_and_not_alone() -> None:
    found = sets.first([WORKERS, NORM, AUTOCAST, LAYOUT], said, lambda chosen: False)
    assert found == [(WORKERS,), (WORKERS, NORM, AUTOCAST, LAYOUT), (WORKERS, NORM), (NORM,)]


def test_what_compiles_is_last_and_a_set_without_it_is_tried_too() -> None:
    found = sets.first([WORKERS, NORM, AUTOCAST], said, lambda chosen: NORM in chosen)
    several = [(WORKERS, NORM, AUTOCAST), (WORKERS, NORM)]
    assert found == [(WORKERS,), (WORKERS, AUTOCAST), (NORM,), *several]


def test_a_fix_that_was_not_tried_alone_stays_in_the_set() -> None:
    alone = {WORKERS: 2.0, NORM: 1.0, AUTOCAST: 1.0}
    found = sets.neighbours((WORKERS, AUTOCAST), alone)
    assert found == [(WORKERS, NORM, AUTOCAST)]


def test_two_fixes_of_one_finding_are_no_set() -> None:
    other = replace(WORKERS, which=1)
    found = sets.first([WORKERS, other], lambda chosen: 2.0, lambda chosen: False)
    assert found == [(WORKERS,), (other,)]
