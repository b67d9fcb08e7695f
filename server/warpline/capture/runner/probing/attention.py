"""Attention: two products with a softmax between them."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ....wire.probing import Question
from .pair import Pair
from .products import LOWER
from .tensors import leaf, made, with_gradients


def attention(question: Question, device: str) -> Pair:
    """Tensors: query, key (rows are features, as the product takes it) and value.

    Options: "causal" or "mask" (one that hides the upper triangle, given as a tensor), "dropout" (a tenth,
    and then results cannot be compared), "einsum" (heads are the last dimension but one of what comes in and
    goes out). The fused call gets a dimension for heads where there is none, as its kernels want one.
    """
    query, turned, value = (made(one, device) for one in question.tensors)
    inputs = [leaf(query, question), leaf(turned.transpose(-2, -1), question), leaf(value, question)]
    rows, columns, rank = query.shape[-2], turned.shape[-1], query.dim()
    seen = None
    if "causal" in question.options or "mask" in question.options:
        seen = torch.ones(rows, columns, dtype=torch.bool, device=device).tril()
    dropout = 0.1 if "dropout" in question.options else 0.0

    summed = "einsum" in question.options and query.dim() == 4
    if summed:
        inputs = [leaf(one.detach().transpose(1, 2).contiguous(), question) for one in inputs]

    def written(q: Any, k: Any, v: Any) -> Any:
        scores = torch.einsum("bihd,bjhd->bhij", q, k) if summed else q @ k.transpose(-2, -1)
        scores = scores / math.sqrt(q.shape[-1])
        if seen is not None:
            scores = scores.masked_fill(~seen, float("-inf"))
        weights = torch.softmax(scores, -1)
        weights = F.dropout(weights, dropout) if dropout else weights
        return torch.einsum("bhij,bjhd->bihd", weights, v) if summed else weights @ v

    causal = "causal" in question.options

    def fused(q: Any, k: Any, v: Any) -> Any:
        mask = None if causal else seen
        if summed:
            q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        elif q.dim() == 3:
            q, k, v = (one.unsqueeze(1) for one in (q, k, v))
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal)
        return found.transpose(1, 2) if summed else found.squeeze(1) if rank == 3 else found

    return Pair(
        with_gradients(question, written, inputs), with_gradients(question, fused, inputs), same=not dropout
    )


def fused_attention(question: Question, device: str) -> Pair:
    """Tensors: query, key and value as they are passed.

    Options, one of: "causal" (a causal mask as a tensor becomes ``is_causal=True``), "no-heads" (three
    dimensions become four), "broadcast" (inputs are expanded to equal sizes), "switched-off" (the math
    implementation, though a fused kernel could run), or the precision to go to ("bf16", "fp16"; the result
    comes back as it was). "mask": there is another mask besides.
    """
    inputs = [leaf(made(one, device), question) for one in question.tensors]
    rows, columns = inputs[0].shape[-2], inputs[1].shape[-2]
    options = question.options
    lower = torch.ones(rows, columns, dtype=torch.bool, device=device).tril()
    mask = lower if "mask" in options or "causal" in options else None
    half = next((LOWER[word] for word in options if word in LOWER), None)

    def before(q: Any, k: Any, v: Any) -> Any:
        if "switched-off" in options:
            with sdpa_kernel(SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def after(q: Any, k: Any, v: Any) -> Any:
        if "causal" in options:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if half is not None:
            found = F.scaled_dot_product_attention(q.to(half), k.to(half), v.to(half), attn_mask=mask)
            return found.to(q.dtype)
        if "no-heads" in options:
            q, k, v = q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(1)
        if "broadcast" in options:
            sizes = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
            q, k, v = (one.expand(*sizes, -1, -1) for one in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return Pair(
        with_gradients(question, before, inputs), with_gradients(question, after, inputs), tolerance=half
    )


KINDS: Dict[str, Callable[[Question, str], Pair]] = {
    "attention": attention,
    "fused_attention": fused_attention,
}
