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
#: Each round has a second tensor of its own, of whatever shape.
OWN: Dict[str, Callable[..., Any]] = {
    "mv": lambda x, y: torch.matmul(x, y.unsqueeze(-1)).squeeze(-1),
    "bmm": torch.matmul,
    "dot": lambda x, y: (x * y).sum(-1),
    "cdist": torch.cdist,
}
#: Reductions are over the last dimension, which pieces and the whole have in common.
REDUCTIONS: Dict[str, Callable[..., Any]] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "max": lambda x: x.amax(-1),
    "min": lambda x: x.amin(-1),
    "prod": lambda x: x.prod(-1),
    "std": lambda x: x.std(-1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "linalg_vector_norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "fft_fft": torch.fft.fft,
    "fft_rfft": torch.fft.rfft,
}
ELEMENTWISE: Dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        *("abs", "neg", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "relu", "square"),
        *("log1p", "expm1", "reciprocal", "erf", "floor", "round", "clone"),
        *("add", "sub", "mul", "div", "maximum", "minimum"),
    )
}
#: Losses of two tensors of one shape: a number for each piece.
LOSSES: Dict[str, Callable[..., Any]] = {
    "mse_loss": F.mse_loss,
    "l1_loss": F.l1_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss,
    "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits,
}
WORKS: Dict[str, Callable[..., Any]] = {
    **PRODUCTS,
    **OWN,
    **REDUCTIONS,
    **ELEMENTWISE,
    **LOSSES,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "leaky_relu": F.leaky_relu,
    "clamp": lambda x, *_: x.clamp(-1.0, 1.0),
    "pow": lambda x, *_: x.pow(2.0),
    "cross_entropy_loss": lambda x, *_: F.cross_entropy(x, _zeros(x)),
}
#: With one tensor these have a number beside it.
WITH_NUMBER = ("add", "sub", "mul", "div")
#: Of positive numbers only.
POSITIVE = ("log", "log1p", "sqrt", "rsqrt", "reciprocal")


#: What a round calls, where that takes no batch.
WORK_OF_A_PIECE: Dict[str, Callable[..., Any]] = {"mv": torch.mv, "bmm": torch.bmm, "dot": torch.dot}


def _zeros(scores: Any) -> Any:
    """The first class for all scores: which class it is costs nothing. Classes are the second dimension of
    several, or the only one."""
    shape = (*scores.shape[:1], *scores.shape[2:]) if scores.dim() > 1 else ()
    return torch.zeros(shape, dtype=torch.int64, device=scores.device)


def _at_once(name: str, whole: Any, *rest: Any) -> Any:
    """``WORKS[name]`` of all pieces, which lie along the first dimension."""
    if name in LOSSES:
        each = LOSSES[name](whole, *rest, reduction="none")
        return each.flatten(1).mean(1) if each.dim() > 1 else each
    if name == "cross_entropy_loss":
        rows = whole if whole.dim() == 2 else whole.flatten(0, 1)
        each = F.cross_entropy(rows, _zeros(rows), reduction="none")
        return each.view(len(whole), -1).mean(1)
    return WORKS[name](whole, *rest)


def loop(question: Question, device: str) -> Pair:
    """Tensors: a piece, and what it is combined with. Options: the operator, and the number of rounds."""
    name, rounds = question.options[0], int(question.options[1])
    piece, others = question.tensors[0], question.tensors[1:]
    # What is shaped like the piece is a piece of something else; the rest is the same in each round.
    apart = [name in OWN or (name not in PRODUCTS and one.shape == piece.shape) for one in others]
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
            found.append(WORK_OF_A_PIECE.get(name, WORKS[name])(whole[at], *beside, *numbers))
        return torch.stack(found)

    def at_once(whole: Any, *rest: Any) -> Any:
        return _at_once(name, whole, *rest, *numbers)

    return Pair(with_gradients(question, piecewise, inputs), with_gradients(question, at_once, inputs))


def _pieces(one: Tensor, rounds: int, device: str) -> Any:
    return made(Tensor((rounds, *one.shape), one.dtype), device)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"loop": loop}
