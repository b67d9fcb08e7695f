"""Recurrent layers: a cell called for each time, or the layer on the whole sequence."""

from __future__ import annotations

from typing import Any, Callable, Dict

import torch

from ....wire.probing import Question, Tensor
from .pair import Pair
from .tensors import leaf, made, with_gradients

_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def recurrent(question: Question, device: str) -> Pair:
    """Tensors: a cell's input (batch, size) and the weights of its state (gates times state, state). Options:
    the layer ("LSTM", "GRU" or "RNN"), and the number of times."""
    layer, times = question.options[0], int(question.options[1])
    step, weights = question.tensors[:2]
    sequence = leaf(made(Tensor((times, *step.shape), step.dtype), device), question)
    sizes = step.shape[-1], weights.shape[-1]
    whole = getattr(torch.nn, layer)(*sizes).to(sequence)
    cell = getattr(torch.nn, f"{layer}Cell")(*sizes).to(sequence)
    with torch.no_grad():
        for name in _WEIGHTS:
            getattr(cell, name).copy_(getattr(whole, f"{name}_l0"))

    def each(given: Any, *_: Any) -> Any:
        state, found = None, []
        for one in given:
            state = cell(one, state)
            found.append(state[0] if layer == "LSTM" else state)
        return torch.stack(found)

    def at_once(given: Any, *_: Any) -> Any:
        return whole(given)[0]

    # By default cuDNN's layers use TF32, whose mantissa is as long as float16's; cells do not.
    reduced = sequence.is_cuda and sequence.dtype == torch.float32 and torch.backends.cudnn.allow_tf32
    return Pair(
        with_gradients(question, each, [sequence, *cell.parameters()]),
        with_gradients(question, at_once, [sequence, *whole.parameters()]),
        tolerance=torch.float16 if reduced else None,
    )


KINDS: Dict[str, Callable[[Question, str], Pair]] = {"recurrent": recurrent}
