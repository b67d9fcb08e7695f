"""Optimizers: parameter by parameter or by lists, and fused."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from ....wire.probing import Question
from .pair import Pair
from .tensors import made


def optimizer(question: Question, device: str) -> Pair:
    """Tensors: the parameters, or a part of them. Options: the class, "foreach" or "fused" where it works so
    now, "groups" where each parameter has a group of its own, "apart" where it has an optimizer of its own,
    and "momentum" for SGD."""
    name, *words = question.options
    given: dict[str, Any] = {"momentum": 0.9} if "momentum" in words else {}
    values = [made(one, device) for one in question.tensors]
    gradients = [torch.randn_like(one) for one in values]
    now = {"fused": True} if "fused" in words else {"foreach": "foreach" in words}
    each = "groups" in words or "apart" in words

    def stepping(split: bool, how: Dict[str, Any]) -> Callable[[], Any]:
        parameters = [value.clone().requires_grad_() for value in values]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        groups = [{"params": [one]} for one in parameters] if split else [{"params": parameters}]
        apart = [[one] for one in groups] if "apart" in words else [groups]
        optimizers = [getattr(torch.optim, name)(some, lr=1e-3, **given, **how) for some in apart]

        def step() -> Any:
            for one in optimizers:
                one.step()
            return parameters

        return step

    return Pair(stepping(each, now), stepping(False, now if "groups" in words else {"fused": True}))


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"optimizer": optimizer}
