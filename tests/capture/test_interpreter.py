"""In which order an interpreter is looked for when none is named."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from warpline.capture import interpreter
from warpline.wire.run import Request


def environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def test_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    here = tmp_path / "project" / "package"
    active, hidden, plain, above = (
        environment(folder)
        for folder in (tmp_path / "active", here / ".venv", here / "venv", tmp_path / "project" / ".venv")
    )
    request = Request(target="train.py", cwd=str(here))
    assert interpreter.find(Request(python=str(above), cwd=str(here), environment={})) == str(above)
    monkeypatch.setenv("VIRTUAL_ENV", str(active.parents[1]))
    for expected in (active, hidden, plain, above):
        assert interpreter.find(request) == str(expected)
        shutil.rmtree(expected.parents[1])

    # Neither has the machine one anywhere above, as far as this test can know.
    monkeypatch.setattr(interpreter.os, "access", lambda *_: False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert interpreter.find(request) == sys.executable
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/bin/{name}")
    assert interpreter.find(request) == "/bin/python3"
