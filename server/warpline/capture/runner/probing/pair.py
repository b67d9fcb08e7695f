"""A computation and its replacement."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import torch

from ....wire.probing import Question
from .tensors import leaf, made, with_gradients


def _all(found: Any) -> Any:
    return found


class Pair(NamedTuple):
    """``same``: both give the same numbers, which is checked. ``tolerance``: a coarser dtype that the
    replacement computes in. ``checked``: what of a result is compared."""

    before: Callable[[], Any]
    after: Callable[[], Any]
    same: bool = True
    tolerance: Optional[torch.dtype] = None
    checked: Callable[[Any], Any] = _all


def of_one_input(before: Callable[..., Any], after: Callable[..., Any]) -> Callable[[Question, str], Pair]:
    """A kind that is two functions of one tensor."""

    def make(question: Question, device: str) -> Pair:
        inputs = [leaf(made(question.tensors[0], device), question)]
        return Pair(with_gradients(question, before, inputs), with_gradients(question, after, inputs))

    return make
