"""What attention that is written out is tried with: only what ran in the recorded step."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.attention import attentions


def _attend(rate: float, training: bool = True, mask: bool = False) -> torch.Tensor:
    q, k, v = (torch.randn(4, 2, 24, 8, requires_grad=True) for _ in range(3))
    scores = q @ k.transpose(-2, -1) / 8**0.5
    if mask:
        scores = scores.masked_fill(torch.ones(24, 24, dtype=torch.bool).triu(1), float("-inf"))
    return F.dropout(scores.softmax(-1), rate, training) @ v


@pytest.mark.parametrize(
    ("rate", "training", "mask", "words"),
    [
        (0.2, True, False, ("dropout",)),
        (0.2, True, True, ("mask", "dropout")),
        (0.2, False, False, ()),
        (0.0, True, True, ("mask",)),
    ],
)
def test_dropout_counts_where_numbers_are_drawn(
    rate: float, training: bool, mask: bool, words: tuple[str, ...]
) -> None:
    (found,) = attentions(recorded(lambda: _attend(rate, training, mask)))
    assert found.words == words


def test_weights_times_other_numbers_are_no_dropout() -> None:
    def act() -> torch.Tensor:
        q, k, v = (torch.randn(4, 24, 8) for _ in range(3))
        gates = torch.randn(4, 24, 24).sigmoid()
        return (q @ k.transpose(-2, -1)).softmax(-1).mul(gates) @ v

    (found,) = attentions(recorded(act))
    assert found.words == ()
