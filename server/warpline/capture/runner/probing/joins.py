"""Tensors that grow by concatenation."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from ....wire.probing import Question
from .pair import Pair
from .tensors import leaf, made, with_gradients


def cat(question: Question, device: str) -> Pair:
    """Tensor: a piece. Options: how many of them there are, and along which dimension."""
    count, dim = int(question.options[0]), int(question.options[1])
    pieces = [leaf(made(question.tensors[0], device), question) for _ in range(count)]

    def growing(*given: Any) -> Any:
        whole = given[0]
        for piece in given[1:]:
            whole = torch.cat([whole, piece], dim)
        return whole

    def once(*given: Any) -> Any:
        return torch.cat(given, dim)

    return Pair(with_gradients(question, growing, pieces), with_gradients(question, once, pieces))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"cat": cat}
