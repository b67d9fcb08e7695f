"""Loops over numbers that do the same to the same tensors: by what was recorded, however they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.repeated import repeated

torch = pytest.importorskip("torch")

ROWS, LABELS = torch.randn(64, 8), torch.randint(0, 12, (64,))
LAYERS = [torch.nn.Linear(8, 8) for _ in range(12)]


def rounds(act: Callable[[], Any]) -> int:
    """As if the whole of this file were the loop's lines."""
    lines = range(1, len(Path(__file__).read_text().splitlines()) + 1)
    return repeated(recorded(act), {(__file__, line) for line in lines}, least=8)


def means_by_label() -> Any:
    found = []
    for k in range(12):
        own = (k == LABELS).to(ROWS.dtype)
        found.append((ROWS * own[:, None]).sum(0) / own.sum().clamp_min(1))
    return torch.stack(found)


def frequencies() -> Any:
    return torch.cat([torch.sin(ROWS * 2.0**k) for k in range(10)], -1)


def added_up() -> Any:
    total = torch.zeros(())
    for k in range(12):
        total = total + (k == LABELS).float().var()
    return total


@pytest.mark.parametrize("act", [means_by_label, frequencies, added_up])
def test_the_same_tensors_with_another_number_each_round(act: Callable[[], Any]) -> None:
    assert rounds(act) >= 10


def one_layer_for_each_label() -> Any:
    return [LAYERS[k](ROWS[k == LABELS]) for k in range(12)]


def needs_the_round_before() -> Any:
    x = ROWS
    for k in range(12):
        x = torch.tanh(x) * ROWS.pow(k).mean()
    return x


def the_same_each_time() -> Any:
    return [ROWS * 2.0 for _ in range(12)]


def few() -> Any:
    return [k == LABELS for k in range(4)]


@pytest.mark.parametrize("act", [one_layer_for_each_label, needs_the_round_before, the_same_each_time, few])
def test_other_loops(act: Callable[[], Any]) -> None:
    assert rounds(act) == 0
