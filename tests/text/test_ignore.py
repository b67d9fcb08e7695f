"""One grammar for ignore comments, in diagnosis and in the editor."""

from __future__ import annotations

import pytest

from warpline.model.report import Finding, SourceLine
from warpline.text.ignore import Suppressions, on_line
from warpline.text.lines import split
from warpline.view import actions
from warpline.view.anchor import Anchor
from warpline.view.diagnostics import notices

CODE = "x = [\n    1,\n]\n"
FINDING = Finding("1", "small-batch", "warning", "/a.py", 1, SourceLine("/a.py", 1), "message", ())


@pytest.mark.parametrize(
    ("old", "new", "silent"),
    [
        ("x = [", "x = [  # warpline: ignore[small-batch]", True),
        ("x = [", "x = [  # warpline: ignore", True),
        ("x = [", "x = [  # warpline: ignore[other]", False),
        ("x = [", "x = [  # warpline: ignore-file[other]", False),
        ("    1,", "    1,  # warpline: ignore[small-batch]", True),
        ("x = [", "# warpline: ignore[small-batch]\nx = [", True),
        ("    1,", '    "# warpline: ignore",', False),
    ],
)
def test_the_editor_and_diagnosis_agree(old: str, new: str, silent: bool) -> None:
    now = CODE.replace(old, new)
    line = now.split("\n").index(next(row for row in now.split("\n") if row.startswith("x = [")))
    assert Suppressions(now).holds("small-batch", line + 1) == silent
    shown = notices([FINDING], lambda file: Anchor(CODE, split(now)), lambda file: split(now))
    assert (list(shown) == []) == silent


def test_a_comment_for_the_file_is_no_list_of_the_line() -> None:
    line = "# warpline: ignore-file[other]"
    assert on_line(line) is None
    change = actions.ignore_here(line, "small-batch")
    assert change is not None
    after = line[: change[0]] + change[2]
    assert Suppressions(after + "\nx = 1\n").holds("small-batch", 2)
    assert not Suppressions(after + "\n\nx = 1\n").holds("small-batch", 3)
