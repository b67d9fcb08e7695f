"""Recall and exact-line precision of all rules over the corpus, and its fixes applied together."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import warpline
from tests.corpus.corpus_cases import Case, Place, cases
from warpline import pipeline
from warpline.diagnosis import Diagnosis, diagnose, together
from warpline.rules import names

CASES = cases()
SYNTHETIC = [pytest.param(case, id=case.name) for case in CASES if not case.run]
REAL = [pytest.param(case, id=case.name) for case in CASES if case.run]


DIAGNOSES: dict[str, Diagnosis] = {}


def diagnosed(case: Case) -> Diagnosis:
    """Of a case whose annotations are its profile; made once."""
    if case.name not in DIAGNOSES:
        DIAGNOSES[case.name] = diagnose(case.project.profile, case.project.texts.get)
    return DIAGNOSES[case.name]


def found_in(case: Case) -> set[Place]:
    assert [note for note in diagnosed(case).notes if "failed" in note] == []
    return {(finding.file, finding.line, finding.rule) for finding in diagnosed(case).findings}


@pytest.mark.parametrize("case", SYNTHETIC)
def test_exact_lines(case: Case) -> None:
    found = found_in(case)
    assert found >= case.expected, "not found"
    assert {place for place in found if place[2] not in case.may} <= case.expected, "found in addition"


@pytest.mark.parametrize("case", SYNTHETIC)
def test_all_fixes_together_parse(case: Case) -> None:
    texts = case.project.texts
    made = together(case.project.profile, diagnosed(case).findings, texts.get)
    for path, text in made.texts.items():
        ast.parse(text, path)
        assert text != texts[path]
    assert [skipped.reason for skipped in made.skipped if "failed" in skipped.reason] == []


@pytest.mark.parametrize("case", REAL)
def test_exact_lines_of_real_runs(case: Case, tmp_path: Path) -> None:
    for path, text in case.project.texts.items():
        (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    script = Path(next(iter(case.project.texts))).name
    done = warpline("profile", "--steps", "3", "--run-dir", tmp_path / "runs", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    report = pipeline.report_of(run)
    found = {(f"/project/{Path(f.file).name}", f.line, f.rule) for f in report.findings}
    assert found >= case.expected, "not found"
    assert {place for place in found if place[2] not in case.may} <= case.expected, "found in addition"


def test_every_rule_has_two_scripts_and_ten_are_well_made(capsys: pytest.CaptureFixture[str]) -> None:
    scripts = {rule: [case for case in CASES if case.rule == rule] for rule in names()}
    assert {rule for rule, found in scripts.items() if len(found) < 2} == set()
    assert sum(not case.rule for case in CASES) >= 10
    expected, right, wrong = 0, 0, 0
    for case in CASES:
        if not case.run:
            found = {place for place in found_in(case) if place[2] not in case.may}
            expected += len(case.expected)
            right += len(found & case.expected)
            wrong += len(found - case.expected)
    recall, precision = 100 * right / expected, 100 * right / (right + wrong)
    with capsys.disabled():
        print(
            f"\ncorpus: {len(CASES)} scripts ({len(REAL)} run for real), {expected} lines marked: "
            f"recall {recall:.1f} %, exact-line precision {precision:.1f} %"
        )
    assert recall == precision == 100
