"""Which line became which: the cases that a person would name. The random ones are in tests/lsp."""

from __future__ import annotations

import pytest

from warpline.text.alignment import align
from warpline.text.lines import key, split
from warpline.view.anchor import NONE, Anchor


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "xabc", [-1, 0, 1, 2]),
        ("abc", "ac", [0, 2]),
        ("abcdef", "adefbc", [0, 3, 4, 5, 1, 2]),  # a block that moved
        ("aab", "aaab", [0, 1, -1, 2]),  # one of several equal lines is new: the last, by convention
        ("", "abc", [-1, -1, -1]),
        ("abc", "", []),
        ("abcabc", "cab", [2, 3, 4]),
    ],
)
def test_lines_that_stayed_came_or_moved(old: str, new: str, expected: list[int]) -> None:
    assert align([c * 8 for c in old], [c * 8 for c in new]) == expected


def test_a_line_that_changed_in_place_is_the_same_line() -> None:
    old = ["def f(x):", "    y = torch.relu(x)", "    return y"]
    assert align(old, ["def f(x):", "    y = torch.gelu(x)", "    return y"]) == [0, 1, 2]
    assert align(old, ["def f(x):", "    print('something else altogether')", "    return y"]) == [0, -1, 2]


def test_two_equally_likely_candidates_are_none() -> None:
    assert align(["head", "    x = f(1)", "tail"], ["head", "    x = f(2)", "    x = f(3)", "tail"]) == [
        0,
        -1,
        -1,
        2,
    ]


def test_equal_lines_are_told_apart_by_the_edit() -> None:
    lines = split("x = f(x)\nx = f(x)\nx = f(x)\n")
    anchor = Anchor("".join(lines), lines)
    # The second of three equal lines is deleted: "(1, 0) to (2, 0)" leaves the third one.
    anchor.splice(1, 2, [lines[2]], head=False, tail=True)
    anchor.settle()
    assert [anchor.where(n) for n in range(3)] == [0, NONE, 1]
    # And comes back by undo.
    anchor.splice(1, 1, [lines[1], lines[2]], head=False, tail=True)
    anchor.settle()
    assert [anchor.where(n) for n in range(3)] == [0, 1, 2]


def test_a_copy_does_not_take_the_result_from_its_original() -> None:
    lines = split("x = f(x)\ny = 1\n")
    anchor = Anchor("".join(lines), lines)
    anchor.splice(0, 1, [lines[0], lines[0]], head=False, tail=True)
    anchor.settle()
    assert (anchor.origin(0), anchor.origin(1)) == (NONE, 0)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a\n", ""]),
        ("a\r\nb\rc\n", ["a\r\n", "b\r", "c\n", ""]),
        ("a\x0cb\u2028c\x85\n", ["a\x0cb\u2028c\x85\n", ""]),
    ],
)
def test_lines_as_editors_count_them(text: str, lines: list[str]) -> None:
    assert split(text) == lines


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1", "    x  =  1  # why\r\n", True),
        ("x = '#1'", "x = '#2'", False),
        ("x = '#1'  # a", "x = '#1'  # b", True),
        ("x = '''#1", "x = '''#2", False),
        ("# one", "# two", False),
        ("x = 1", "x = 2", False),
    ],
)
def test_what_changes_a_line(one: str, other: str, same: bool) -> None:
    assert (key(one) == key(other)) == same


def test_ten_thousand_lines_in_no_order() -> None:
    """Quadratic work here would hold up every keystroke of the editor."""
    old = [f"line {n % 977} of {n % 13}" for n in range(10_000)]
    new = [*old[5000:], "one more", *old[:5000]]
    match = align(old, new)
    assert all(i < 0 or old[i] == new[j] for j, i in enumerate(match))
    assert len({i for i in match if i >= 0}) == sum(i >= 0 for i in match)
