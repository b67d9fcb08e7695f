"""All fixes together, in ranked order, leave a script that parses, runs and has the same loss."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from tests.corpus.corpus_cases import Case, cases
from warpline.diagnosis import diagnose, together


@pytest.fixture(scope="module")
def case() -> Case:
    return next(case for case in cases() if case.name == "loader-without-workers/ten_flaws")


def loss_of(texts: Mapping[str, str], folder: Path) -> float:
    folder.mkdir()
    for path, text in texts.items():
        (folder / Path(path).name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"^loss ([\d.]+)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return float(found.group(1))


def test_ten_flaws_mended_together(case: Case, tmp_path: Path) -> None:
    texts = case.project.texts
    found = diagnose(case.project.profile, texts.get).findings
    assert len(found) >= 10
    made = together(case.project.profile, found, texts.get)
    assert [(skipped.finding.rule, skipped.reason) for skipped in made.skipped] == []
    assert {change.finding.id for change in made.changes} == {finding.id for finding in found}
    # Nothing is left to mend: the same profile on the mended text offers no edit.
    mended = {**texts, **made.texts}
    assert together(case.project.profile, found, mended.get).texts == {}
    before, after = loss_of(texts, tmp_path / "before"), loss_of(mended, tmp_path / "after")
    assert after == pytest.approx(before, rel=1e-5)
