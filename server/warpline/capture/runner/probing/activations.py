"""Activation functions written out. Each is written in its most common form, op for op."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

import torch
import torch.nn.functional as F

from ....wire.probing import Question
from .pair import Pair, of_one_input

ROOT = math.sqrt(2 / math.pi)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(ROOT * (x + 0.044715 * torch.pow(x, 3))))


def elu(x: Any) -> Any:
    return torch.where(x > 0, x, torch.exp(x) - 1)


def tanh(x: Any) -> Any:
    up, down = torch.exp(x), torch.exp(-x)
    return (up - down) / (up + down)


def softmax(x: Any) -> Any:
    shifted = torch.exp(x - x.amax(-1, keepdim=True))
    return shifted / shifted.sum(-1, keepdim=True)


KINDS: Dict[str, Callable[[Question, str], Pair]] = {
    "gelu": of_one_input(gelu, F.gelu),
    "gelu_tanh": of_one_input(gelu_tanh, lambda x: F.gelu(x, approximate="tanh")),
    "silu": of_one_input(lambda x: x * torch.sigmoid(x), F.silu),
    "mish": of_one_input(lambda x: x * torch.tanh(F.softplus(x)), F.mish),
    "hardswish": of_one_input(lambda x: x * F.relu6(x + 3) / 6, F.hardswish),
    "sigmoid": of_one_input(lambda x: 1 / (1 + torch.exp(-x)), torch.sigmoid),
    "tanh": of_one_input(tanh, torch.tanh),
    "softplus": of_one_input(lambda x: torch.log(1 + torch.exp(x)), F.softplus),
    "softmax": of_one_input(softmax, lambda x: torch.softmax(x, -1)),
    "log_softmax": of_one_input(
        lambda x: x - torch.logsumexp(x, -1, keepdim=True), lambda x: torch.log_softmax(x, -1)
    ),
    "leaky_relu": of_one_input(lambda x: torch.where(x > 0, x, 0.01 * x), F.leaky_relu),
    "elu": of_one_input(elu, F.elu),
}
