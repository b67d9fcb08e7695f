"""Loops over the pieces of a tensor: one call for each piece, or one for all of them."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question, Tensor
from .pair import Pair
from .tensors import leaf, made, with_gradients

#: They take the same second tensor, a weight, in each round.
PRODUCTS: Dict[str, Callable[..., Any]] = {"linear": F.linear, "matmul": torch.matmul, "mm": torch.matmul}
#: Reductions are over the last dimension, which pieces and the whole have in common.
REDUCTIONS: Dict[str, Callable[..., Any]] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(-1),
    "std": lambda x: x.std(-1),
    "var": lambda x: x.var(-1),
}
ELEMENTWISE: Dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        *("abs", "neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "square"),
        *("add", "sub", "mul", "div", "maximum", "minimum"),
    )
}
WORKS: Dict[str, Callable[..., Any]] = {
    **PRODUCTS,
    **REDUCTIONS,
    **ELEMENTWISE,
    "gelu": F.gelu,
    "silu": F.silu,
}
#: With one tensor these have a number beside it.
WITH_NUMBER = ("add", "sub", "mul", "div")
#: Of positive numbers only.
POSITIVE = ("log", "sqrt", "rsqrt")


def loop(question: Question, device: str) -> Pair:
    """Tensors: a piece, and what it is combined with. Options: the operator, and the number of rounds."""
    name, rounds = question.options[0], int(question.options[1])
    piece, others = question.tensors[0], question.tensors[1:]
    # What is shaped like the piece is a piece of something else; the rest is the same in each round.
    apart = [name not in PRODUCTS and one.shape == piece.shape for one in others]
    values = [_pieces(piece, rounds, device)]
    values += [
        _pieces(one, rounds, device) if each else made(one, device) for one, each in zip(others, apart)
    ]
    if name in POSITIVE:
        values[0] = values[0].abs() + 0.1
    numbers = (2.0,) if name in WITH_NUMBER and not others else ()
    inputs = [leaf(one, question) for one in values]

    def piecewise(whole: Any, *rest: Any) -> Any:
        found = []
        for at in range(rounds):
            beside = [one[at] if each else one for one, each in zip(rest, apart)]
            found.append(WORKS[name](whole[at], *beside, *numbers))
        return torch.stack(found)

    def at_once(whole: Any, *rest: Any) -> Any:
        return WORKS[name](whole, *rest, *numbers)

    return Pair(with_gradients(question, piecewise, inputs), with_gradients(question, at_once, inputs))


def _pieces(one: Tensor, rounds: int, device: str) -> Any:
    return made(Tensor((rounds, *one.shape), one.dtype), device)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"loop": loop}
