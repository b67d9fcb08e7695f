"""Calls of a decorated function that come while another one is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

import warpline


def test_a_function_that_calls_itself_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    @warpline.profile(show=False)
    def countdown(number: int) -> int:
        return number and countdown(number - 1)

    assert countdown(3) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "no step was found in the block" in said[0]
