"""Norms over the last dimension, with a gain and, for LayerNorm, a shift."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair
from .tensors import leaf, made, with_gradients

EPS = 1e-5


def by_variance(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    spread = x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(spread + EPS) * weight + bias


def by_squares(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + EPS) * weight + bias


def root_mean_square(x: Any, weight: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def _parameters(question: Question, device: str, count: int) -> list[Any]:
    x = made(question.tensors[0], device)
    rest = [torch.randn(x.shape[-1], device=device).to(x.dtype) for _ in range(count)]
    return [leaf(one, question) for one in (x, *rest)]


def layer_norm(question: Question, device: str) -> Pair:
    """Option "var": the variance comes from ``x.var``."""
    inputs = _parameters(question, device, 2)
    written = by_variance if "var" in question.options else by_squares

    def fused(x: Any, weight: Any, bias: Any) -> Any:
        return F.layer_norm(x, x.shape[-1:], weight, bias, EPS)

    return Pair(with_gradients(question, written, inputs), with_gradients(question, fused, inputs))


def rms_norm(question: Question, device: str) -> Pair:
    inputs = _parameters(question, device, 1)

    def fused(x: Any, weight: Any) -> Any:
        return F.rms_norm(x, x.shape[-1:], weight, EPS)

    return Pair(with_gradients(question, root_mean_square, inputs), with_gradients(question, fused, inputs))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"layer_norm": layer_norm, "rms_norm": rms_norm}
