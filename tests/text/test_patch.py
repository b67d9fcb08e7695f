"""Patches are what ``git apply`` takes, and read back they make the same text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from warpline.text import patch

OLD = "a = 1\n\f\nclass B:\n    x = 1\n\f\n    y = 'two\x85three'\nz = 4\n-- not a header\nend = 1\n"
NEW = {
    "beside a form feed": OLD.replace("x = 1", "x = 2"),
    "a line with one": OLD.replace("\f\n    y = 'two\x85three'", "\f  # now\n    y = 'two\u2028three'"),
    "a line that looks like a header": OLD.replace("-- not a header\n", "++ nor this\n"),
    "no line end": OLD[:-1],
    "first line": "import os\n" + OLD,
    "last line": OLD + "last",
    "empty": "",
}


@pytest.mark.parametrize("new", NEW.values(), ids=NEW)
@pytest.mark.parametrize("old", [OLD, OLD[:-1], ""], ids=["old", "old without an end", "nothing"])
def test_read_back(old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = patch.written(str(tmp_path / "m.py"), old, new)
    lines = old.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + lines[-1:]
    for file, first, end, text in sorted(patch.hunks(made, tmp_path), reverse=True):
        assert file == str(tmp_path / "m.py")
        lines[first - 1 : end - 1] = [text]
    assert "".join(lines) == new


def test_git_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number, new in enumerate(NEW.values()):
        if not new:
            continue
        path = tmp_path / f"m {number}.py"
        path.write_text(OLD, encoding="utf-8", newline="")
        made = patch.written(str(path), OLD, new)
        subprocess.run(["git", "apply", "-"], input=made.encode(), check=True)
        assert path.read_bytes().decode() == new
