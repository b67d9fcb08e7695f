"""What ``tune`` says when its budget ends before a fix was timed."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpline import pipeline
from warpline.commands import tune
from warpline.model.problem import Problem
from warpline.wire.messages import Progress


def ended(monkeypatch: pytest.MonkeyPatch, folder: Path, report: bool) -> tuple[Problem, float]:
    """``tune --budget 1`` where the profile comes to its first step, or to its ``report``; and how long after
    that the profile was told to end."""
    heard: list[float] = []

    def profile(
        _: object,
        *,
        on_progress: Callable[[Progress], None],
        cancelled: threading.Event,
        on_report: Callable[[Path, Any], None],
        ends: float,
        **more: Any,
    ) -> Any:
        heard.append(ends - time.monotonic())
        on_progress(Progress("waiting", 0, None, "waiting for the first step"))
        if report:
            on_report(folder / "run", None)
        while not cancelled.wait(0.01) and not cancelled.is_set():
            pass
        raise Problem("cancelled", 130)

    script = folder / "train.py"
    script.touch()
    monkeypatch.setattr(pipeline, "profile", profile)
    parser = argparse.ArgumentParser()
    tune.configure(parser)
    options = parser.parse_args(["--budget", "1", "--run-dir", str(folder / "runs"), str(script)])
    options.began = time.monotonic()
    with pytest.raises(Problem) as found:
        tune.run(options)
    return found.value, heard[0]


def test_a_profile_that_is_not_ready_says_what_it_was_doing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said, left_s = ended(monkeypatch, tmp_path, report=False)
    assert "could not be profiled within 1 s" in str(said)
    assert "it was at: waiting for the first step" in str(said)
    assert said.status == 1
    assert 0 < left_s < 1  # so long may the profile and all after it take


def test_a_profile_that_is_ready_is_not_said_to_have_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said, _ = ended(monkeypatch, tmp_path, report=True)
    assert "could not" not in str(said)
    assert "no fix was timed" in str(said)
    assert "the next tune uses it" in str(said)
