"""What a step computes of nothing that changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.constants import constant_nodes

DATA = torch.randn(8, 16)


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rate", torch.rand(4))
        self.register_buffer("seen", torch.zeros(16))

    def forward(self, x: Any) -> Any:
        self.seen += x.detach().mean(0)
        grid = torch.stack(
            torch.meshgrid(torch.linspace(-1, 1, 4), torch.linspace(-1, 1, 4), indexing="ij"), -1
        )
        return (grid.reshape(16, 2, 1) * self.rate).cos().sum() + x + self.seen.sin()


def names(act: Callable[[], Any], *modules: Any) -> list[str]:
    return [node.name for node in constant_nodes(recorded(act, list(modules)))]


def test_positions_and_masks() -> None:
    def act() -> Any:
        position = torch.arange(16).float()[:, None] * torch.logspace(0, -2, 8)
        mask = torch.full((16, 16), float("-inf")).triu(1)
        return DATA @ (mask + position.sin().repeat(1, 2)).clamp(min=-1)

    assert {"arange", "logspace", "sin", "full", "triu", "clamp"} <= set(names(act))
    assert "mm" not in names(act)


def test_of_buffers_that_nothing_writes_to() -> None:
    model = Encoder()
    found = names(lambda: model(DATA), model)
    assert "cos" in found and "stack" in found
    assert "sin" not in found, "`seen` is written in each step"
    assert "cos" not in names(lambda: model(DATA)), "a tensor that nothing is known of may be a batch"


def added_up() -> Any:
    sums = [torch.zeros(8, 16)]
    torch._foreach_add_(sums, [DATA])
    return sums


@pytest.mark.parametrize(
    ("act", "never"),
    [
        (added_up, "zeros"),
        (lambda: DATA + torch.zeros(8, 16).normal_().exp(), "exp"),
        (lambda: DATA + torch.rand_like(torch.zeros(8, 16)).exp(), "exp"),
        (lambda: torch.full((8, 16), 0.37).exp() + DATA, "exp"),
        (lambda: torch.arange(5, 21).float().exp() + DATA, "exp"),
        (lambda: torch.tensor([[0.0] * 16]).exp() + DATA, "exp"),
        (lambda: torch.zeros(8, 16).add_(DATA).exp(), "zeros"),
        (lambda: [(DATA + torch.ones(8, 16) * index).exp() for index in range(3)], "mul"),
        (lambda: torch.nn.functional.one_hot(DATA.argmax(1), 16), "scatter"),
        (lambda: torch.empty(0).set_(DATA.untyped_storage(), 0, (8, 16)).exp(), "exp"),
    ],
    ids=[
        "added-up",
        "random",
        "random-like",
        "a-time",
        "a-position",
        "given",
        "accumulator",
        "of-samples",
        "of-data",
        "of-a-worker",
    ],
)
def test_what_may_change(act: Callable[[], Any], never: str) -> None:
    assert never not in names(act)


def test_a_tensor_that_data_is_written_into_through_a_view_is_none() -> None:
    def act() -> Any:
        padded = torch.zeros(10, 16)
        padded[1:9] = DATA
        padded[0] = 0
        return padded.exp()

    assert not {"zeros", "exp"} & set(names(act))


def test_what_the_backward_pass_starts_with_is_none() -> None:
    weight = torch.randn(16, 4, requires_grad=True)
    assert names(lambda: (DATA @ weight).sum().backward()) == []
