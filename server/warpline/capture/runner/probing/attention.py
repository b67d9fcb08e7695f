"""Attention: two products with a softmax between them."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair
from .tensors import leaf, made, with_gradients


def attention(question: Question, device: str) -> Pair:
    """Tensors: query, key (rows are features, as the product takes it) and value.

    Options: "causal" or "mask" (one that hides the upper triangle, given as a tensor), "dropout" (a tenth,
    and then results cannot be compared).
    """
    query, turned, value = (made(one, device) for one in question.tensors)
    inputs = [leaf(query, question), leaf(turned.transpose(-2, -1), question), leaf(value, question)]
    rows, columns = query.shape[-2], turned.shape[-1]
    seen = None
    if "causal" in question.options or "mask" in question.options:
        seen = torch.ones(rows, columns, dtype=torch.bool, device=device).tril()
    dropout = 0.1 if "dropout" in question.options else 0.0

    def written(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if seen is not None:
            scores = scores.masked_fill(~seen, float("-inf"))
        weights = torch.softmax(scores, -1)
        return (F.dropout(weights, dropout) if dropout else weights) @ v

    causal = "causal" in question.options

    def fused(q: Any, k: Any, v: Any) -> Any:
        mask = None if causal else seen
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal)

    return Pair(
        with_gradients(question, written, inputs), with_gradients(question, fused, inputs), same=not dropout
    )


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"attention": attention}
