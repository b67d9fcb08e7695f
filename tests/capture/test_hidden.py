"""Padding that masks show: those of attention, of pooling and of losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded

torch = pytest.importorskip("torch")
F = torch.nn.functional

ROWS, COLUMNS = 4, 32
LENGTHS = torch.tensor([32, 12, 9, 20])
PADDED = ROWS * COLUMNS - int(LENGTHS.sum())
VALID = torch.arange(COLUMNS) < LENGTHS[:, None]
X = torch.randn(ROWS, COLUMNS, 16)
SCORES = torch.randn(ROWS, 2, COLUMNS, COLUMNS)
CLASSES = torch.randint(5, (ROWS, COLUMNS)).masked_fill(~VALID, -100)
LOGITS = torch.randn(ROWS, COLUMNS, 5)
CAUSAL = torch.ones(COLUMNS, COLUMNS, dtype=torch.bool).tril()
QUERY = torch.randn(ROWS, 2, COLUMNS, 8)
ATTENTION = torch.nn.MultiheadAttention(16, 2, batch_first=True)


def padding(act: Callable[[], Any]) -> list[tuple[int, int, int]]:
    return [(one.rows, one.columns, one.padded) for one in recorded(act).flow.padding if one.mask]


@pytest.mark.parametrize(
    "act",
    [
        lambda: F.scaled_dot_product_attention(QUERY, QUERY, QUERY, attn_mask=VALID[:, None, None]),
        lambda: F.scaled_dot_product_attention(QUERY, QUERY, QUERY, attn_mask=VALID[:, None, None] & CAUSAL),
        lambda: ATTENTION(X, X, X, key_padding_mask=~VALID),
        lambda: SCORES.masked_fill(~VALID[:, None, None], float("-inf")).softmax(-1),
        lambda: SCORES + (~VALID)[:, None, None].float() * -1e9,
        lambda: torch.where(VALID[:, None, None], SCORES, -1e9).softmax(-1),
        lambda: (X * VALID[..., None]).sum(1) / VALID.sum(1, keepdim=True),
        lambda: (VALID[..., None].float() * X).amax(1),
        lambda: VALID[:, None].float() @ X / 32,
        lambda: torch.bmm(X.transpose(1, 2), VALID[..., None].float()),
        lambda: torch.bmm((VALID / VALID.sum(1, keepdim=True))[:, None], X),
        lambda: torch.einsum("rc,rcf->rf", VALID.float(), X),
        lambda: torch.einsum("bnd, bn -> bd", X.bfloat16(), VALID.bfloat16()),
        lambda: (X.flip(1) * VALID.flip(1)[..., None]).sum(1),  # at the beginning
        lambda: (F.mse_loss(X[..., 0], X[..., 1], reduction="none") * VALID).sum() / VALID.sum(),
        lambda: F.cross_entropy(LOGITS.flatten(0, 1), CLASSES.clone().flatten()),
        lambda: F.cross_entropy(LOGITS.transpose(1, 2).flatten(2), CLASSES.clone().view(ROWS, -1)),
    ],
)
def test_positions_that_are_hidden_are_padding(act: Callable[[], Any]) -> None:
    assert (ROWS, COLUMNS, PADDED) in padding(act)


SPOTS = torch.rand(ROWS, COLUMNS) < 0.5


@pytest.mark.parametrize(
    "act",
    [
        lambda: F.scaled_dot_product_attention(QUERY, QUERY, QUERY, is_causal=True),
        lambda: F.scaled_dot_product_attention(QUERY, QUERY, QUERY, attn_mask=CAUSAL),
        lambda: SCORES.masked_fill(~CAUSAL, float("-inf")).softmax(-1),
        lambda: ATTENTION(X, X, X, attn_mask=~CAUSAL, need_weights=False),
        lambda: torch.zeros(COLUMNS, COLUMNS).masked_fill(~CAUSAL.T, float("-inf")),
        lambda: torch.zeros(8, COLUMNS).masked_fill(~CAUSAL[-8:], float("-inf")),  # after others
        lambda: X * SPOTS[..., None],  # spots that are masked for training
        lambda: X * torch.rand(ROWS, COLUMNS, 1),  # a gate
        lambda: X * (torch.arange(COLUMNS) < 9).expand(ROWS, COLUMNS)[..., None],  # the same in each row
        lambda: X * (torch.arange(COLUMNS) < 9).expand(ROWS, COLUMNS).contiguous()[..., None],
        lambda: X.masked_fill(~VALID[..., None], 3.5),  # not hidden
        lambda: torch.bmm(torch.rand(ROWS, 1, COLUMNS), X),  # weights that differ
        lambda: torch.bmm((torch.rand(ROWS, 1, COLUMNS) * VALID[:, None]), X),
        lambda: torch.bmm(F.one_hot(LENGTHS // 2, COLUMNS)[:, None].float(), X),  # one column of each row
        lambda: torch.bmm(torch.ones(ROWS, 1, COLUMNS), X),
        lambda: torch.bmm(-VALID[:, None].float(), X),
        lambda: X[..., 0] * VALID.flip(1),  # a loss of what comes after a prompt
        lambda: X + VALID[..., None],
        lambda: F.relu(X) * (X > 0),
    ],
)
def test_other_masks_are_none(act: Callable[[], Any]) -> None:
    assert padding(act) == []


@pytest.mark.parametrize(
    "act",
    [
        lambda: VALID[:, None].float() @ X,
        lambda: torch.bmm(VALID[:, None].float(), X),
        lambda: torch.einsum("rc,rcf->rf", VALID.float(), X),
    ],
)
def test_also_in_inference_mode_where_products_are_not_taken_apart(act: Callable[[], Any]) -> None:
    def inferred() -> None:
        with torch.inference_mode():
            act()

    assert padding(inferred) == [(ROWS, COLUMNS, PADDED)]
