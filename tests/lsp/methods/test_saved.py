"""A file that is saved while it is profiled, as an editor sees it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lsp.client import Client

SAVED = """\
import pathlib, sys, time, torch

model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pathlib.Path("started").touch()
while not pathlib.Path("saved").exists():
    time.sleep(0.01)
while True:
    time.sleep(0.05)  # HOT
    model(torch.randn(32, 64)).sum().backward()
    optimizer.step()
"""


def test_a_file_that_is_edited_and_saved_during_its_profile(
    tmp_path: Path, connect: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers are on the lines that ran, wherever these are now."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for each other are slow on a busy machine
    script = tmp_path / "train.py"
    script.write_text(SAVED)
    client = connect(tmp_path)
    uri = client.open(script)
    asked = client.begin("warpline/profile", {"uri": uri, "python": sys.executable, "steps": 2})
    client.until((tmp_path / "started").exists)
    client.edit(uri, (0, 0), (0, 0), "# one\n# two\n# three\n")
    script.write_text("# one\n# two\n# three\n" + SAVED)
    (tmp_path / "saved").touch()
    client.answer(asked)
    heat = client.request("warpline/heat", {"uri": uri})
    hottest = max(heat["lines"], key=lambda line: line["stepMs"])
    text = script.read_text().split("\n")
    assert text[hottest["line"]].strip() == "time.sleep(0.05)  # HOT"
    hints = client.hint_lines(uri)
    assert hottest["line"] in hints
    assert not {0, 1, 2, 3} & set(hints)
