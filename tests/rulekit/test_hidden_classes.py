"""Masks of scores of classes, which hide no positions of a batch."""

from __future__ import annotations

import pytest

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.padding import hides_classes

torch = pytest.importorskip("torch")

CLASSES, ROWS = 40, 12
WEIGHT = torch.nn.Parameter(torch.randn(CLASSES, 16))
STATES = torch.randn(ROWS, 16)
LENGTHS = torch.tensor([9, 30, 4, 21, 38, 12, 7, 26, 17, 3, 33, 14])
BEFORE = torch.arange(CLASSES) < LENGTHS[:, None]
POOLED = torch.nn.Linear(16, 1)
STEPS = torch.randn(ROWS, CLASSES, 16)


def test_classes_of_a_layer_are_no_positions() -> None:
    graph = recorded(lambda: (STATES @ WEIGHT.t()).float().masked_fill(~BEFORE, float("-inf")).amax(1))
    (found,) = [one for one in graph.flow.padding if one.mask]
    assert (found.rows, found.columns) == (ROWS, CLASSES)
    assert hides_classes(graph, found)


def test_weights_of_positions_are_of_positions() -> None:
    def pool() -> None:
        weights = POOLED(STEPS).squeeze(-1).masked_fill(~BEFORE, float("-inf")).softmax(1)
        (weights[..., None] * STEPS).sum(1)

    graph = recorded(pool)
    found = [one for one in graph.flow.padding if one.mask]
    assert found
    assert not any(hides_classes(graph, one) for one in found)
