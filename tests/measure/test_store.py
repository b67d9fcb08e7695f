"""Measurements survive restarts and go stale with the code they speak of."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from warpline.measure import results, store
from warpline.measure.candidate import Candidate
from warpline.measure.contest import Outcome
from warpline.model.report import Finding, Measured, Predicted, SourceLine

MEASURED = Measured(1.8, 1.7, 1.9, 0.0002, 0.9)


def finding(identity: str = "f1") -> Finding:
    where = SourceLine("/model.py", 4)
    predicted = Predicted(10.0, 2.0, "simulated")
    return Finding(identity, "fp32-matmul", "warning", "/train.py", 3, where, "slow", (), predicted)


def outcome() -> Outcome:
    return Outcome(Candidate(("f1",), "x", {"/train.py": "new"}), 20.0, 11.0, MEASURED, True, "faster", 5)


def test_it_is_found_again_and_attached(tmp_path: Path) -> None:
    texts = {"/train.py": "old", "/model.py": "m", "/other.py": "o"}
    store.add(tmp_path, store.entry(outcome(), finding(), texts.get))
    (attached, untouched) = store.attach(tmp_path, [finding(), finding("f2")], texts.get)
    assert attached.measured == MEASURED
    assert untouched.measured is None
    assert store.load(tmp_path)[0].predicted == 2.0


def test_it_goes_stale_with_its_own_code_and_with_no_other(tmp_path: Path) -> None:
    texts = {"/train.py": "old", "/model.py": "m", "/other.py": "o"}
    store.add(tmp_path, store.entry(outcome(), finding(), texts.get))
    assert store.fresh(tmp_path, {**texts, "/other.py": "changed"}.get)
    assert not store.fresh(tmp_path, {**texts, "/train.py": "old "}.get)
    assert not store.fresh(tmp_path, {**texts, "/model.py": "changed"}.get)
    assert store.fresh(tmp_path, texts.get)


def test_a_new_measurement_takes_the_place_of_the_old(tmp_path: Path) -> None:
    texts = {"/train.py": "old"}
    store.add(tmp_path, store.entry(outcome(), finding(), texts.get))
    failed = replace(outcome(), step_ms=None, measured=None, kept=False, reason="it crashed")
    store.add(tmp_path, store.entry(failed, finding(), texts.get))
    (only,) = store.load(tmp_path)
    assert (only.measured, only.reason) == (None, "it crashed")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99, "entries": []}', '{"entries": [1]}'])
def test_a_malformed_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / store.NAME).write_text(text)
    assert store.load(tmp_path) == ()


def test_past_predictions_have_their_error(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "manifest.json").write_text("{}")
    assert store.prediction_error(tmp_path) is None
    store.add(run, store.entry(outcome(), finding(), {}.get))
    error = store.prediction_error(tmp_path)
    assert error is not None
    assert error == (pytest.approx(2.0 / 1.8 - 1), 1)


def test_the_json_is_the_contracts() -> None:
    crashed = replace(outcome(), step_ms=None, measured=None, kept=False, reason="it crashed")
    found = results.results([outcome(), crashed], outcome(), {"/train.py": "old"}.get)
    read = msgspec.json.decode(msgspec.json.encode(found))
    assert list(read) == ["format", "baseline_step_ms", "candidates", "best"]
    wanted = ["fixes", "step_ms", "speedup", "low", "high", "loss_drift", "memory_ratio", "kept", "reason"]
    assert [list(one) for one in read["candidates"]] == [wanted, wanted]
    assert list(read["best"]) == ["fixes", "speedup", "patch"]
    assert read["candidates"][1]["speedup"] is None


@pytest.mark.parametrize(
    ("old", "new"), [("a\nb\nc\n", "a\nB\nc\n"), ("a\nb", "a\nB"), ("a\r\nb\r\n", "a\r\nB\r\n")]
)
def test_the_patch_is_one_that_git_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_bytes(old.encode())
    patch = results.unified({str(file): new}, lambda path: old)
    command = ["git", "-c", "core.autocrlf=false", "apply", "-"]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(command, input=patch.encode(), cwd=tmp_path, env=environment, check=True)
    assert file.read_bytes() == new.encode()
