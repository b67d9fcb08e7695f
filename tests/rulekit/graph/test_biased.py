"""Which convolutions have a bias that a batch norm subtracts again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.biased import biased

torch = pytest.importorskip("torch")
nn = torch.nn

IMAGES = torch.randn(2, 3, 8, 8)


def subtracted(first: Any, norm: Any, *, again: bool = False) -> list[tuple[tuple[int, ...], bool]]:
    def act() -> Any:
        h = first(IMAGES)
        out = norm(h)
        return out + h if again else torch.relu(out)

    return [(one.kernel, one.subtracted) for one in biased(recorded(act))]


def test_a_norm_behind_it_subtracts_the_bias() -> None:
    assert subtracted(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)) == [((3, 3), True)]


def test_without_a_bias_there_is_nothing_to_subtract() -> None:
    assert subtracted(nn.Conv2d(3, 4, 1, bias=False), nn.BatchNorm2d(4)) == []


def test_what_else_reads_the_result_reads_the_bias() -> None:
    assert subtracted(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), again=True) == [((1, 1), False)]


def test_stored_means_do_not_have_the_bias() -> None:
    assert subtracted(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4).eval()) == [((1, 1), False)]


def test_other_norms_do_not_subtract_each_channels_mean() -> None:
    assert subtracted(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4)) == [((1, 1), False)]


def test_a_transposed_convolution_has_the_channels_of_its_result() -> None:
    (one,) = biased(recorded(lambda: nn.ConvTranspose2d(3, 4, 2)(IMAGES)))
    assert (one.channels, one.subtracted) == (4, False)
