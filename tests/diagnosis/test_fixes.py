"""Fixes follow the text: made anew after edits, several in one file, and written without other changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpline.diagnosis import diagnose, files, fixes, together
from warpline.model.problem import Problem
from warpline.rulekit.example import FILE, Example, read_example
from warpline.text.alignment import matched
from warpline.text.edits import apply

CODE = """\
#> totals idle_ms=30
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32)  #> site loader num_workers=0 pin_memory=false
total = 0.0
for images in loader:  #> cost cpu_ms=40 idle_ms=40 loader_ms=40; use loader
    images = images.cuda()  #> cost device_ms=6 copy_ms=6
    #^ kernel "Memcpy HtoD (Pageable -> Device)" device_ms=6 kind=copy
    loss = train(images)  #> cost device_ms=10
    total += loss.item()  #> cost cpu_ms=9 sync_ms=9 step_ms=0.5
    torch.cuda.empty_cache()  #> cost cpu_ms=4 idle_ms=4
"""

ALL_FIXED = """\
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=32, num_workers=4, persistent_workers=True, pin_memory=True)
total = 0.0
for images in loader:
    images = images.cuda(non_blocking=True)
    loss = train(images)
    total += loss.detach().double()
total = float(total)
"""


@pytest.fixture
def example() -> Example:
    return read_example(CODE)


def test_all_fixes_of_a_file_together(example: Example) -> None:
    found = diagnose(example.profile, example.profile.sources.get).findings
    made = together(example.profile, found, example.profile.sources.get)
    assert made.texts == {FILE: ALL_FIXED}
    assert len(made.changes) == len(found) == 4
    assert made.skipped == ()


def test_a_fix_is_made_anew_on_the_text_as_it_is(example: Example) -> None:
    finding = diagnose(example.profile, example.profile.sources.get).findings[0]
    now = "# new first line\n" + example.text.replace("batch_size=32)", "batch_size=64)")
    (fix,) = fixes(example.profile, finding, lambda path: now)
    expected = "DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)"
    assert expected in apply(now, fix.edits)


def test_no_fix_where_the_line_is_gone_or_done(example: Example) -> None:
    finding = diagnose(example.profile, example.profile.sources.get).findings[0]
    gone = example.text.replace("loader = DataLoader(dataset, batch_size=32)\n", "")
    assert fixes(example.profile, finding, lambda path: gone) == ()
    done = apply(example.text, finding.fixes[0].edits)
    assert fixes(example.profile, finding, lambda path: done) == ()


def test_lines_are_followed_through_edits() -> None:
    old = "a = first()\nb = second(a)\nc = third(b)\n"
    new = "import x\na = first()\nwith y:\n    b = second(a, more=1)\n    c = third(b)\n"
    assert matched(old, new) == {1: 2, 2: 4, 3: 5, 4: 6}
    assert matched(old, "import z\n") == {4: 2}
    # What is equal at both ends is taken for the same, and never for two lines at once.
    assert matched("x\nx\nx\n", "x\nx\n") == {1: 1, 2: 2, 4: 3}
    assert matched("x\nx\n", "x\nx\nx\n") == {1: 1, 2: 2, 3: 4}
    assert matched(old, old + "d = 1\n") == {1: 1, 2: 2, 3: 3, 4: 5}


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
