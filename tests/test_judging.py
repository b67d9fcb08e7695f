"""Replacements that were tried: kept in the run, and the same wherever its report is made."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpline import judging, runs
from warpline.capture import probing
from warpline.model.report import Predicted, Report
from warpline.wire.probing import PROBED, Answer, Cost, Probed, Question

HALF = Cost(500.0, 500.0)
WHOLE = Cost(1000.0, 1000.0)


def norm(report: Report) -> Predicted:
    (found,) = (one.predicted for one in report.findings if one.rule == "hand-written-norm")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("runs") / "run"
    shutil.copytree(recorded("layernorm-finetune"), copy)
    return copy


def test_what_was_tried_is_kept_and_found_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Question] = []

    def probe(_: object, questions: Sequence[Question], seconds: float, **more: Any) -> Probed:
        asked.extend(questions)
        return Probed(tuple(Answer(one, WHOLE, HALF) for one in questions))

    # The plan is half of a report's time, and not what this is about.
    monkeypatch.setattr(importlib.import_module("warpline.diagnosis.plan"), "MOST", 0)
    before = judging.judge(run, judging.read(run, None))
    assert norm(before.report).basis == "simulated"
    assert "layer_norm" in {one.kind for one in before.questions}
    monkeypatch.setattr(probing, "probe", probe)
    request = replace(runs.manifest(run).request, probe_s=1.0)
    judging.try_replacements(run, before, request, None, None)
    assert asked == list(before.questions)
    kept = judging.kept(run, judging.REPORT, Report)
    assert kept is not None
    assert norm(kept).basis == "probed"
    # On another machine the run folder is all there is.
    elsewhere = tmp_path / "run"
    shutil.copytree(run, elsewhere)
    (elsewhere / judging.REPORT).unlink()
    made = judging.judge(elsewhere, judging.read(elsewhere, None))
    assert norm(made.report) == norm(kept)
    # Answers that are malformed, from a stranger's folder, cost only themselves.
    (elsewhere / PROBED).write_text('{"answers": 3}')
    assert norm(judging.judge(elsewhere, before.read).report).basis == "simulated"
