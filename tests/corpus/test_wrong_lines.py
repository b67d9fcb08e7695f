"""Evidence that points at the wrong line, at no line, or at a file that is gone: no rule fails of it."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.corpus.corpus_cases import Case, cases
from warpline.diagnosis import diagnose, together
from warpline.model.profile import Profile

CASES = [case for case in cases() if not case.run]


def moved(profile: Profile, by: int) -> Profile:
    """All places ``by`` lines further down, past the end of the file for some."""
    lines = tuple(replace(cost, line=cost.line + by) for cost in profile.lines)
    sites = tuple(
        replace(site, line=site.line + by, uses=tuple((file, line + by) for file, line in site.uses))
        for site in profile.facts.sites
    )
    events = tuple(replace(event, line=event.line + by) for event in profile.facts.compile_events)
    return replace(profile, lines=lines, facts=replace(profile.facts, sites=sites, compile_events=events))


def check(case: Case, profile: Profile, texts: dict[str, str]) -> None:
    diagnosis = diagnose(profile, texts.get)
    assert [note for note in diagnosis.notes if "failed" in note] == []
    made = together(profile, diagnosis.findings, texts.get)
    assert [skipped.reason for skipped in made.skipped if "failed" in skipped.reason] == []
    for path, text in made.texts.items():
        ast.parse(text, path)


@pytest.mark.parametrize("by", [-1, 1, 1000])
def test_wrong_lines(by: int) -> None:
    for case in CASES:
        check(case, moved(case.project.profile, by), case.project.texts)


@pytest.mark.parametrize("text", ["", "x = 1\n", "def f(:\n", "\n" * 60])
def test_other_texts(text: str) -> None:
    for case in CASES:
        check(case, case.project.profile, dict.fromkeys(case.project.texts, text))


def test_no_texts() -> None:
    for case in CASES:
        check(case, case.project.profile, {})
        check(case, replace(case.project.profile, sources={}), {})
