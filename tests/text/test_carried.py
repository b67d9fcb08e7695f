"""Positions after edits, and words of a line that changed."""

from __future__ import annotations

import random

import pytest

from warpline.model.report import Edit
from warpline.text.alignment import word_at
from warpline.text.edits import apply, carried

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1)


@pytest.mark.parametrize("seed", range(40))
def test_each_letter_that_stays_is_found_where_it_went(seed: int) -> None:
    chance = random.Random(seed)
    letters = chance.sample(LETTERS, len(LETTERS))
    text = "".join(letter + chance.choice(["", "", "\n"]) for letter in letters)
    cuts = sorted(chance.sample(range(len(text) + 1), 6))
    ends = [(cuts[0], cuts[1]), (cuts[2], cuts[2]), (cuts[3], cuts[5])]
    words = ["", "1", "2\n", "\n3\n4", "56"]
    edits = [Edit("f", _position(text, a), _position(text, b), chance.choice(words)) for a, b in ends]
    now = apply(text, edits)
    for letter in letters:
        found = carried(_position(text, text.index(letter)), edits)
        assert found == (_position(now, now.index(letter)) if letter in now else None)


@pytest.mark.parametrize(
    ("old", "new", "word", "expected"),
    [
        ("DataLoader(d, 32, num_workers=0)", "DataLoader(d, 32, num_workers=4)", "32", "32"),
        ("DataLoader(d, 32, num_workers=0)", "DataLoader(d, 32, num_workers=4)", "0)", None),
        ("f(lr=0.1, batch=8)", "f(lr=0.1, fused=True, batch=8)", "8", "8"),
        ("f(kind='a', size=8)", "f(kind='b', size=8)", "'a'", None),
        ("f(kind='a', size=8)", "f(kind='b', size=8)", "8", "8"),
        ("f(size=(3, 4))", "g(size=(5, 4))", "(3", None),  # what the bracket holds may have changed
        ("total = 80", "total: int = 8", "80", None),
    ],
)
def test_a_word_of_a_line_that_changed(old: str, new: str, word: str, expected: str | None) -> None:
    found = word_at(old, new, old.index(word))
    assert found == (-1 if expected is None else new.index(expected))
