"""Tensors that grow by concatenation."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from ....wire.probing import Question
from .pair import Pair
from .tensors import made


def cat(question: Question, device: str) -> Pair:
    """Tensor: a piece. Options: how many of them there are, and along which dimension."""
    count, dim = int(question.options[0]), int(question.options[1])
    pieces = [made(question.tensors[0], device) for _ in range(count)]

    def growing() -> Any:
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = torch.cat([whole, piece], dim)
        return whole

    def once() -> Any:
        return torch.cat(pieces, dim)

    return Pair(growing, once)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"cat": cat}
