"""A fix as a unified diff."""

from __future__ import annotations

from warpline.model.report import Edit
from warpline.view.diff import diff


def test_a_line_changes() -> None:
    edits = [Edit("/w/a.py", (2, 4), (2, 5), "3")]
    found = diff(edits, {"/w/a.py": "import x\nn = 1\nprint(n)\n"}, {"/w/a.py": "a.py"})
    assert found == [
        "--- a.py",
        "+++ a.py",
        "@@ -1,4 +1,4 @@",
        " import x",
        "-n = 1",
        "+n = 3",
        " print(n)",
        " ",
    ]


def test_edits_of_two_files_and_one_whose_text_is_not_known() -> None:
    edits = [Edit("a", (1, 0), (1, 1), "B"), Edit("b", (1, 0), (1, 1), "C"), Edit("c", (1, 0), (1, 1), "D")]
    found = diff(edits, {"a": "b", "b": "c"}, {})
    assert [line for line in found if line.startswith(("-", "+"))] == [
        *("--- a", "+++ a", "-b", "+B"),
        *("--- b", "+++ b", "-c", "+C"),
    ]


def test_edits_of_another_text_make_none() -> None:
    assert diff([Edit("/w/a.py", (9, 0), (9, 5), "n = 2")], {"/w/a.py": "n = 1\n"}, {}) == []
