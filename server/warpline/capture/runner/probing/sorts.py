"""Sorts whose first entries alone are read."""

from __future__ import annotations

from typing import Any, Callable, Dict

from ....wire.probing import Question
from .pair import Pair
from .tensors import made, with_gradients


def topk(question: Question, device: str) -> Pair:
    """Tensor: what is sorted. Options: along which dimension, how many entries are read, and "largest" where
    those are the largest. The values are compared: of equal entries either may come first."""
    dim, read, largest = int(question.options[0]), int(question.options[1]), "largest" in question.options
    inputs = [made(question.tensors[0], device)]

    def all_sorted(given: Any) -> Any:
        return given.sort(dim, largest).values.narrow(dim, 0, read)

    def first_few(given: Any) -> Any:
        return given.topk(read, dim, largest).values

    return Pair(with_gradients(question, all_sorted, inputs), with_gradients(question, first_few, inputs))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"topk": topk}
