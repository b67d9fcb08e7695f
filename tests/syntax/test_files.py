"""Source files are written without other changes than those asked for, or left as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpline.model.problem import Problem
from warpline.syntax import files


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"x = 1\r\ny = 2\r\n", b"x = 3\r\ny = 2\r\n"),
        (b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbfx = 3\n"),
        ("# -*- coding: latin-1 -*-\nx = 1  # é\n".encode("latin-1"),
         "# -*- coding: latin-1 -*-\nx = 3  # é\n".encode("latin-1")),
        (b"x = 1", b"x = 3"),
        (b"a = 0\rx = 1\r", b"a = 0\rx = 3\r"),
    ],
)  # fmt: skip
def test_writing_keeps_encoding_mark_and_line_ends(tmp_path: Path, content: bytes, expected: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content)
    path.chmod(0o640)
    file = files.read(path)
    assert not file.text.startswith("\ufeff")
    files.write(file, file.text.replace("x = 1", "x = 3"))
    assert path.read_bytes() == expected
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("x = 1\n")
    link.symlink_to(real)
    files.write(files.read(link), "x = 2\n")
    assert link.is_symlink()
    assert real.read_text() == "x = 2\n"


@pytest.mark.parametrize("what", ["read-only", "changed", "cannot encode"])
def test_what_cannot_be_written_is_left_as_it_is(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"# coding: ascii\nx = 1\n" if what == "cannot encode" else b"x = 1\n")
    file = files.read(path)
    if what == "read-only":
        path.chmod(0o444)
    if what == "changed":
        path.write_bytes(b"x = 5\n")
    before = path.read_bytes()
    with pytest.raises(Problem) as problem:
        files.write(file, "x = 'é'\n")
    assert os.fspath(path) in str(problem.value)
    assert "\n" not in str(problem.value)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_a_file_that_is_no_text_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = '\xff\xfe'\n")
    with pytest.raises(Problem):
        files.read(path)
    assert files.text_of(os.fspath(path)) is None
