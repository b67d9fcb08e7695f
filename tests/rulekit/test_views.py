"""Which views of activations another memory layout allows."""

from __future__ import annotations

import random

import torch

from warpline.rulekit.views import viewable


def test_a_view_that_the_strides_allow() -> None:
    """Compared with torch, on tensors in three layouts."""
    draw = random.Random(5)
    seen = set[bool]()
    for _ in range(600):
        shape = [draw.choice((1, 2, 3, 4)) for _ in range(4)]
        tensor = torch.zeros(shape)
        layout = draw.choice(("contiguous", "channels last", "part"))
        if layout == "channels last":
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        elif layout == "part":
            tensor = torch.zeros([one + 1 for one in shape])[tuple(slice(one) for one in shape)]
        wanted = _another_shape(draw, tensor.numel())
        try:
            tensor.view(wanted)
            allowed = True
        except RuntimeError:
            allowed = False
        assert viewable(shape, tensor.stride(), wanted) is allowed, (shape, tensor.stride(), wanted)
        seen.add(allowed)
    assert seen == {True, False}


def test_a_tensor_without_numbers_can_be_viewed_in_any_way() -> None:
    assert viewable([0, 3, 2, 2], [12, 1, 6, 3], [0, 7])


def _another_shape(draw: random.Random, count: int) -> list[int]:
    found = list[int]()
    for divisor in (2, 2, 2, 3, 3, 2, 2, 2, 3):
        if count % divisor == 0 and draw.random() < 0.7:
            found.append(divisor)
            count //= divisor
    found.append(count)
    draw.shuffle(found)
    return found
