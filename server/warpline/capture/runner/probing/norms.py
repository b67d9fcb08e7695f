"""Norms with a gain and, for LayerNorm, a shift, over the last dimension or those of an option "dims=1,2".

Options "cast", "wide" and "mixed": see ``wire/probing.py``."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import torch
import torch.nn.functional as F

from ....wire.probing import CAST, MIXED, WIDE, Question
from .pair import Pair
from .tensors import leaf, made, with_gradients

EPS = 1e-5


#: The dimensions that are normalised.
Dims = Tuple[int, ...]


def by_variance(x: Any, dims: Dims) -> Any:
    mean = x.mean(dims, keepdim=True)
    spread = x.var(dims, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(spread + EPS)


def by_squares(x: Any, dims: Dims) -> Any:
    centred = x - x.mean(dims, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + EPS)


def root_mean_square(x: Any, dims: Dims) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(dims, keepdim=True) + EPS)


def _pair(
    question: Question, device: str, written: Callable[..., Any], fused: Callable[..., Any], count: int
) -> Pair:
    """``fused(x, shape, *parameters)`` on ``x`` with the dimensions moved to the end, and back from there.

    ``count``: of the parameters, a gain and a shift."""
    x, words = made(question.tensors[0], device), question.options
    told = [word[5:] for word in words if word.startswith("dims=")]
    dims = tuple(int(word) % x.dim() for word in told[0].split(",")) if told else (x.dim() - 1,)
    sizes = [size if at in dims else 1 for at, size in enumerate(x.shape)]
    halved = CAST in words or MIXED in words
    kind = torch.float32 if halved else x.dtype
    parameters = [torch.randn(sizes, device=device).to(kind) for _ in range(count)]
    last = tuple(range(-len(dims), 0))

    def by_hand(x: Any, gain: Any, *shift: Any) -> Any:
        found = written(x.float() if CAST in words else x, dims)
        found = (found.to(x.dtype) if MIXED in words else found) * gain
        found = found + shift[0] if shift else found
        return found.to(x.dtype) if CAST in words and MIXED not in words else found

    def moved(x: Any, *parameters: Any) -> Any:
        given = x.float() if WIDE in words or MIXED in words else x
        turned = given.movedim(dims, last)
        shape = turned.shape[-len(dims) :]
        found = fused(turned, shape, *(one.reshape(shape).to(given.dtype) for one in parameters))
        found = found.movedim(last, dims)
        return found.to(x.dtype) if WIDE in words else found

    inputs = [leaf(one, question) for one in (x, *parameters)]
    return Pair(
        with_gradients(question, by_hand, inputs),
        with_gradients(question, moved, inputs),
        tolerance=x.dtype if halved else None,
    )


def layer_norm(question: Question, device: str) -> Pair:
    """Option "var": the variance comes from ``x.var``."""
    written = by_variance if "var" in question.options else by_squares
    return _pair(question, device, written, lambda x, shape, w, b: F.layer_norm(x, shape, w, b, EPS), 2)


def rms_norm(question: Question, device: str) -> Pair:
    return _pair(question, device, root_mean_square, lambda x, shape, w: F.rms_norm(x, shape, w, EPS), 1)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"layer_norm": layer_norm, "rms_norm": rms_norm}
