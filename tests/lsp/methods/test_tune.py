"""The patch of ``warpline tune`` as edits of the files it names."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from warpline.lsp.worker.tune_job import edits

TEXT = "".join(f"line {n}\n" for n in range(30))


@pytest.mark.parametrize(
    "new",
    [
        TEXT.replace("line 3\n", "first\nsecond\n").replace("line 20\n", ""),
        "import os\n" + TEXT,
        TEXT + "last",
        TEXT[:-1],
        "",
    ],
    ids=["two hunks", "first line", "no line end", "line end lost", "empty"],
)
@pytest.mark.parametrize("old", [TEXT, TEXT[:-1]], ids=["with a last line end", "without"])
def test_a_patch_as_edits(old: str, new: str) -> None:
    pieces = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), "a/train.py", "b/train.py"
    )
    patch = "".join(p if p.endswith("\n") else f"{p}\n\\ No newline at end of file\n" for p in pieces)
    lines = old.splitlines(keepends=True)
    for edit in sorted(edits(patch, Path("/w")), key=lambda edit: -edit["start"][0]):
        assert edit["file"] == "/w/train.py"
        lines[edit["start"][0] - 1 : edit["end"][0] - 1] = [edit["text"]]
    assert "".join(lines) == new
