"""Optimizers: parameter by parameter or by lists, and fused."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from ....wire.probing import Question
from .pair import Pair
from .tensors import made


def optimizer(question: Question, device: str) -> Pair:
    """Tensors: the parameters, or a part of them. Options: the class, "foreach" where it works on lists now,
    "momentum" for SGD."""
    kind = getattr(torch.optim, question.options[0])
    given: dict[str, Any] = {"momentum": 0.9} if "momentum" in question.options else {}
    values = [made(one, device) for one in question.tensors]
    gradients = [torch.randn_like(one) for one in values]

    def stepping(**how: Any) -> Callable[[], Any]:
        parameters = [value.clone().requires_grad_() for value in values]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        made = kind(parameters, lr=1e-3, **given, **how)

        def step() -> Any:
            made.step()
            return parameters

        return step

    return Pair(stepping(foreach="foreach" in question.options), stepping(fused=True))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"optimizer": optimizer}
