"""How many modules of a class torch.compile would compile apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from warpline.capture.runner.births.variants import counted  # noqa: E402


class Layer(nn.Module):
    def __init__(self, part: Any = None, **given: Any) -> None:
        super().__init__()
        self.part = part
        for name, value in given.items():
            setattr(self, name, value)

    def forward(self, x: Any) -> Any:
        x = x if self.part is None else self.part(x)
        return self._moved(x)

    def _moved(self, x: Any) -> Any:
        return x * getattr(self, "scale", 1) if self.index else x  # type: ignore[operator]


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (lambda at: Layer(index=at), 12),
        (lambda at: Layer(index=f"layer {at}"), 12),
        (lambda at: Layer(index=at % 2 > 0), 2),
        (lambda at: Layer(index=0.1 * at), 1),  # a variable
        (lambda at: Layer(index=0, number=at), 1),  # which no code reads
        (lambda at: Layer(nn.Conv1d(4, 4, 3, dilation=at + 1), index=0), 12),
        (lambda at: Layer(nn.Conv1d(4, 4, at + 1), index=0), 12),
        (lambda at: Layer(nn.Sequential(nn.Linear(4, 4 + at), nn.ReLU()), index=0), 12),
        (lambda at: Layer(nn.Linear(4, 4), index=0), 1),
    ],
)
def test_what_the_code_takes_for_a_constant_tells_modules_apart(
    make: Callable[[int], Layer], number: int
) -> None:
    """Twelve such layers were compiled eight times, which is the limit, where this says 12, and two or
    three times where it says 1 or 2: once more for inputs that ask for gradients (torch 2.13)."""
    assert counted(torch, [make(at) for at in range(12)]) == {Layer: number}


def test_few_modules_and_torchs_own_are_not_counted() -> None:
    few = [Layer(index=at) for at in range(8)]
    assert counted(torch, few) == {}
    assert counted(torch, [nn.Linear(4, 4 + at) for at in range(12)]) == {}
