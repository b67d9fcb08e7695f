"""Edits as plain data: ignoring, moving a fix along, making several at once."""

from __future__ import annotations

import pytest

from warpline.model.report import Edit, Fix
from warpline.text.edits import apply
from warpline.text.lines import split
from warpline.view import actions
from warpline.view.anchor import Anchor

SOURCE = """\
import torch

def f(x):
    a = x @ x
    return a

loader = Loader(data)
"""
FIX = Fix("f", "safe", (Edit("/a.py", (4, 8), (4, 13), "torch.mm(x, x)"),))


def moved(text: str) -> str | None:
    lines = split(text)
    fix = actions.moved(FIX, Anchor(SOURCE, lines), SOURCE, lines)
    return apply("".join(lines), fix.edits) if fix is not None else None


def test_a_fix_moves_with_its_function() -> None:
    fixed = SOURCE.replace("x @ x", "torch.mm(x, x)")
    assert moved(SOURCE) == fixed
    assert moved("# new\n" + SOURCE + "more = 1\n") == "# new\n" + fixed + "more = 1\n"
    assert moved(SOURCE.replace("data)", "data, 4)")) == fixed.replace("data)", "data, 4)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = x @ x", "a = x @ y"),
        ("return a", "return a + 1"),  # the function reads otherwise
        ("    a = x @ x\n", "    x = 2 * x\n    a = x @ x\n"),
        ("import torch", "import torch as t"),
        ("Loader(data)", "Loader(data"),  # does not parse
    ],
)
def test_where_its_ground_changed_the_fix_has_to_be_made_anew(old: str, new: str) -> None:
    assert moved(SOURCE.replace(old, new)) is None


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x = 1\n", "x = 1  # warpline: ignore[rule]\n"),
        ("x = 1  # why\n", "x = 1  # why  # warpline: ignore[rule]\n"),
        ("x = 1   \r\n", "x = 1  # warpline: ignore[rule]\r\n"),
        ("x = 1  # warpline: ignore[other]\n", "x = 1  # warpline: ignore[other, rule]\n"),
        ("x = 1  # warpline: ignore\n", None),
        ("x = 1 + \\\n", None),
        ('x = """text\n', None),
    ],
)
def test_ignore_here(line: str, after: str | None) -> None:
    change = actions.ignore_here(line, "rule")
    assert (line[: change[0]] + change[2] + line[change[1] :] if change else None) == after


def test_fixes_that_touch_the_same_text_are_not_made_together() -> None:
    one = Fix("1", "safe", (Edit("/a.py", (1, 0), (1, 5), "a"),))
    other = Fix("2", "safe", (Edit("/a.py", (1, 4), (1, 9), "b"),))
    apart = Fix("3", "safe", (Edit("/a.py", (2, 0), (2, 0), "c"), one.edits[0]))
    assert actions.together([one, other, apart]) == (one.edits[0], apart.edits[0])
