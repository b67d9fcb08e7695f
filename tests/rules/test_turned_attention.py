"""Attention whose scores have a row for each key: the softmax is over the rows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.text.edits import apply

CODE = """\
import torch
import torch.nn.functional as F

def mix(q, k, v, gain=0.3):
    scores = {scores}  #> cost step_ms=9 device_ms=9
    weights = {weights}  #> cost step_ms=9 device_ms=9
    return {mixed}  #> cost step_ms=9 device_ms=9
"""
EINSUM = {
    "scores": 'torch.einsum("bhse,bhte->bhst", k * gain, q)',
    "weights": "F.softmax(scores, dim=-2).to(v.dtype)",
    "mixed": 'torch.einsum("bhst,bhse->bhte", weights, v)',
}
PRODUCT = {
    "scores": "k @ q.transpose(-2, -1) * gain",
    "weights": "scores.softmax(-2)",
    "mixed": "weights.transpose(-2, -1) @ v",
}


def found(**parts: str) -> tuple[str, list[Draft]]:
    example = read_example(CODE.format(**{**EINSUM, **parts}))
    return example.text, list(HandWrittenAttention().find(Context(example.profile, texts(example))))


@pytest.mark.parametrize(
    ("parts", "call"),
    [
        (EINSUM, "F.scaled_dot_product_attention(q, k * gain, v, scale=1.0)"),
        (PRODUCT, "F.scaled_dot_product_attention(q, k, v, scale=gain)"),
        (
            {**PRODUCT, "weights": "F.dropout(scores.softmax(-2), 0.0)"},
            "F.scaled_dot_product_attention(q, k, v, dropout_p=0.0, scale=gain)",
        ),
    ],
)
def test_a_softmax_over_the_keys_is_attention(parts: dict[str, str], call: str) -> None:
    text, (draft,) = found(**parts)
    after = apply(text, draft.fixes[0].edits)
    assert after.endswith(f"    return {call}\n")
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    results = []
    for code in (text, after):
        names: dict[str, Any] = {}
        exec(code, names)
        results.append(names["mix"](q, k, v))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    "parts",
    [
        # Over the queries, which is no attention.
        {**PRODUCT, "weights": "scores.softmax(-1)"},
        {"weights": "F.softmax(scores, dim=-1)"},
        {**PRODUCT, "mixed": "weights @ v"},
        # A mask of these scores is transposed, too.
        {**PRODUCT, "weights": "scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9).softmax(-2)"},
        # Not transposed as a whole.
        {**PRODUCT, "scores": "k @ q * gain"},
        {**PRODUCT, "mixed": "weights.transpose(1, 2) @ v"},
    ],
)
def test_another_softmax_is_not(parts: dict[str, str]) -> None:
    assert [draft.fixes for _, drafts in [found(**parts)] for draft in drafts if draft.fixes] == []
