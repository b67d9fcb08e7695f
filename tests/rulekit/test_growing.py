"""Tensors that grow, by the sizes of what is joined."""

from __future__ import annotations

from warpline.model.profile import Op
from warpline.rulekit.growing import grows


def joins(*lengths: int, piece: int = 4) -> list[Op]:
    """`cat` of a tensor of each length, and a piece."""
    return [Op("aten::cat", "forward", 1.0, 1.0, 1.0, ((length, 64, piece, 64),)) for length in lengths]


def test_a_tensor_that_is_longer_by_the_piece_each_time_grows() -> None:
    assert grows(joins(4, 8, 12, 16))


def test_lengths_may_be_missing_of_a_line_with_many() -> None:
    assert grows(joins(400, 404, 408, 420, 480))


def test_other_lengths_are_no_growth() -> None:
    assert not grows(joins(400, 404, 408, 421))
    assert not grows(joins(40, 80, 160))
    assert not grows(joins(8, 12))
