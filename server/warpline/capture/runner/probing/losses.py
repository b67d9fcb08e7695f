"""Losses, means over everything."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair
from .tensors import leaf, made, with_gradients


def cross_entropy(question: Question, device: str) -> Pair:
    """Classes along the last dimension. Option "one_hot": times a one-hot matrix, not gathered, with "smooth"
    a smoothed one; "by_hand": the logarithm of the softmax is made of exponentials and sums; "apart": that is
    not made, but the logarithm of the sum less the scores of the classes."""
    logits = leaf(made(question.tensors[0], device), question)
    smoothing = 0.1 if "smooth" in question.options else 0.0
    target = torch.randint(logits.shape[-1], logits.shape[:-1], device=device)

    def logarithm(x: Any) -> Any:
        if "by_hand" not in question.options:
            return torch.log_softmax(x, -1)
        rest = x - x.amax(-1, keepdim=True)
        return rest - rest.exp().sum(-1, keepdim=True).log()

    def gathered(x: Any) -> Any:
        logs = logarithm(x)
        return -logs.gather(-1, target.unsqueeze(-1)).mean()

    def multiplied(x: Any) -> Any:
        logs, labels = logarithm(x), F.one_hot(target, x.shape[-1])
        if smoothing:
            labels = labels.float() * (1 - smoothing) + smoothing / x.shape[-1]
        return -(labels * logs).sum(-1).mean()

    def less_picked(x: Any) -> Any:
        by_hand = "by_hand" in question.options
        rest = x - x.amax(-1, keepdim=True) if by_hand else x
        whole = rest.exp().sum(-1).log() if by_hand else x.logsumexp(-1)
        picked = rest.gather(-1, target.unsqueeze(-1)).squeeze(-1)
        if smoothing:
            picked = (1 - smoothing) * picked + smoothing * rest.mean(-1)
        return (whole - picked).mean()

    def fused(x: Any) -> Any:
        flat = x.reshape(-1, x.shape[-1])
        return F.cross_entropy(flat, target.reshape(-1), label_smoothing=smoothing)

    written = multiplied if "one_hot" in question.options else gathered
    written = less_picked if "apart" in question.options else written
    return Pair(with_gradients(question, written, [logits]), with_gradients(question, fused, [logits]))


def mse_loss(question: Question, device: str) -> Pair:
    given, wanted = leaf(made(question.tensors[0], device), question), made(question.tensors[0], device)

    def written(x: Any) -> Any:
        return ((x - wanted) ** 2).mean()

    def fused(x: Any) -> Any:
        return F.mse_loss(x, wanted)

    return Pair(with_gradients(question, written, [given]), with_gradients(question, fused, [given]))


def with_logits(question: Question, device: str) -> Pair:
    given = leaf(made(question.tensors[0], device), question)
    wanted = torch.rand_like(given, requires_grad=False)

    def written(x: Any) -> Any:
        p = torch.sigmoid(x)
        return -(wanted * torch.log(p) + (1 - wanted) * torch.log(1 - p)).mean()

    def fused(x: Any) -> Any:
        return F.binary_cross_entropy_with_logits(x, wanted)

    return Pair(with_gradients(question, written, [given]), with_gradients(question, fused, [given]))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {
    "cross_entropy": cross_entropy,
    "mse_loss": mse_loss,
    "binary_cross_entropy_with_logits": with_logits,
}
