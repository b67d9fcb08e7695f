"""Norms with a gain and, for LayerNorm, a shift, over the last dimension or those of an option "dims=1,2"."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair
from .tensors import leaf, made, with_gradients

EPS = 1e-5


#: The dimensions that are normalised.
Dims = Tuple[int, ...]


def by_variance(x: Any, dims: Dims, weight: Any, bias: Any) -> Any:
    mean = x.mean(dims, keepdim=True)
    spread = x.var(dims, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(spread + EPS) * weight + bias


def by_squares(x: Any, dims: Dims, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(dims, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + EPS) * weight + bias


def root_mean_square(x: Any, dims: Dims, weight: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(dims, keepdim=True) + EPS) * weight


def _pair(
    question: Question, device: str, written: Callable[..., Any], fused: Callable[..., Any], count: int
) -> Pair:
    """``fused(x, shape, *parameters)`` on ``x`` with the dimensions moved to the end, and back from there."""
    x = made(question.tensors[0], device)
    told = [word[5:] for word in question.options if word.startswith("dims=")]
    dims = tuple(int(word) % x.dim() for word in told[0].split(",")) if told else (x.dim() - 1,)
    sizes = [size if at in dims else 1 for at, size in enumerate(x.shape)]
    parameters = [torch.randn(sizes, device=device).to(x.dtype) for _ in range(count)]
    last = tuple(range(-len(dims), 0))

    def moved(x: Any, *parameters: Any) -> Any:
        turned = x.movedim(dims, last)
        shape = turned.shape[-len(dims) :]
        return fused(turned, shape, *(one.reshape(shape) for one in parameters)).movedim(last, dims)

    inputs = [leaf(one, question) for one in (x, *parameters)]
    return Pair(
        with_gradients(question, lambda x, *rest: written(x, dims, *rest), inputs),
        with_gradients(question, moved, inputs),
    )


def layer_norm(question: Question, device: str) -> Pair:
    """Option "var": the variance comes from ``x.var``."""
    written = by_variance if "var" in question.options else by_squares
    return _pair(question, device, written, lambda x, shape, w, b: F.layer_norm(x, shape, w, b, EPS), 2)


def rms_norm(question: Question, device: str) -> Pair:
    return _pair(question, device, root_mean_square, lambda x, shape, w: F.rms_norm(x, shape, w, EPS), 1)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"layer_norm": layer_norm, "rms_norm": rms_norm}
