"""Masks over names, and columns looked up with rows that may be missing."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.trace.columns import take
from warpline.trace.names import Names

NAMES = Names(("aten::mm", "cudaMalloc", "cudaMallocHost", "nccl:all_reduce"))


def test_masks_are_by_beginning_and_by_part() -> None:
    column = np.array([1, 0, 3, 2, -1])
    assert NAMES.mask("cudaMalloc")[column].tolist() == [True, False, False, True, False]
    assert NAMES.mask("aten::", "nccl")[column].tolist() == [False, True, True, False, False]
    assert NAMES.containing("Host", "reduce")[column].tolist() == [False, False, True, True, False]


def test_a_mask_is_made_once_and_cannot_be_changed() -> None:
    assert NAMES.mask("aten::") is NAMES.mask("aten::")
    assert NAMES.mask("nccl") is not NAMES.containing("nccl")
    with pytest.raises(ValueError, match="read-only"):
        NAMES.mask("aten::")[0] = False


def test_no_names_and_no_rows_need_no_case_of_their_own() -> None:
    nothing = np.zeros(0, np.int64)
    assert Names().mask("aten::")[nothing].tolist() == []
    assert take(nothing, np.array([-1, -1])).tolist() == [-1, -1]
    assert take(np.array([7, 8]), np.array([1, -1, 0]), missing=5).tolist() == [8, 5, 7]
    assert take(np.zeros(0, bool), np.array([-1]), missing=False).dtype == bool
