"""The operators of a line that are kept."""

from __future__ import annotations

import numpy as np

from warpline.attribution.ops import _first_of_each


def test_the_first_of_each_line_are_kept() -> None:
    lines = np.array([7, 5, 7, 5, 7, 9])
    order = np.array([4, 3, 0, 5, 2, 1])  # rows, the longest first
    assert _first_of_each(lines, order, 1).tolist() == [False, False, False, True, True, True]
    assert _first_of_each(lines, order, 2).tolist() == [True, True, False, True, True, True]
    assert _first_of_each(lines[:0], order[:0], 2).tolist() == []
