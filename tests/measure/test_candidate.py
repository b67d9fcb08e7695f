"""Edits laid over texts, and what a candidate is known by."""

from __future__ import annotations

import pytest

from warpline.measure.candidate import Candidate, changed
from warpline.model.problem import Problem
from warpline.model.report import Edit

TEXT = "import torch\nx = load(workers=0)\ny = 'é' + z\n"


def read(path: str) -> str | None:
    return {"/a.py": TEXT}.get(path)


def test_edits_are_applied_whatever_their_order() -> None:
    last = Edit("/a.py", (3, 0), (3, 1), "w")
    first = Edit("/a.py", (2, 17), (2, 18), "8")
    assert changed([last, first], read) == {"/a.py": "import torch\nx = load(workers=8)\nw = 'é' + z\n"}


def test_columns_are_code_points() -> None:
    assert changed([Edit("/a.py", (3, 10), (3, 11), "q")], read)["/a.py"].splitlines()[2] == "y = 'é' + q"


def test_insertions_at_one_place_keep_their_order() -> None:
    edits = [Edit("/a.py", (1, 0), (1, 0), "import a\n"), Edit("/a.py", (1, 0), (1, 0), "import b\n")]
    assert changed(edits, read)["/a.py"].startswith("import a\nimport b\nimport torch\n")


def test_an_edit_may_stand_behind_the_last_line() -> None:
    assert changed([Edit("/a.py", (4, 0), (4, 0), "end\n")], read)["/a.py"] == TEXT + "end\n"


def test_a_form_feed_ends_no_line() -> None:
    text = "a = 1  # \x0c\nb = 2\n"
    found = changed([Edit("/f.py", (2, 4), (2, 5), "3")], lambda path: text)
    assert found["/f.py"] == "a = 1  # \x0c\nb = 3\n"


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([Edit("/gone.py", (1, 0), (1, 0), "")], "cannot read /gone.py"),
        ([Edit("/a.py", (9, 0), (9, 1), "")], "changed since"),
        ([Edit("/a.py", (1, 0), (1, 6), "x"), Edit("/a.py", (1, 3), (1, 8), "y")], "overlap"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edits: list[Edit], words: str) -> None:
    with pytest.raises(Problem, match=words):
        changed(edits, read)


def test_the_key_is_of_the_text_alone() -> None:
    one = Candidate(("f1",), "one", {"/a.py": "1", "/b.py": "2"})
    other = Candidate(("f2",), "other", {"/b.py": "2", "/a.py": "1"})
    assert one.key == other.key
    assert one.key != Candidate(("f1",), "one", {"/a.py": "12", "/b.py": ""}).key
