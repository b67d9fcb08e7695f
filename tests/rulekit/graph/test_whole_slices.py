"""A slice of a whole tensor is no operator of the record: torch 2.4 makes one for each ``:`` of an index."""

from __future__ import annotations

import torch

from tests.rulekit.graph.recording import recorded

X = torch.randn(4, 6)


def test_a_slice_of_a_whole_tensor_is_none() -> None:
    graph = recorded(lambda: X[:, 1:][:, :, None][0:4] * X[..., :5].unsqueeze(-1))
    assert [node.name for node in graph.nodes] == ["slice", "unsqueeze", "slice", "unsqueeze", "mul"]


def test_of_views_that_are_sliced_whole_the_parts_remain() -> None:
    def step() -> torch.Tensor:
        return torch.ops.aten.slice(torch.ops.aten.slice(X.exp(), 0), 1, 2).sum()

    graph = recorded(step)
    exp, part, total = graph.nodes
    assert part.inputs == exp.outputs
    assert part.arguments[1:] == (1, 2)
    assert graph.consumers[exp.outputs[0]] == [part]
    assert total.inputs == part.outputs
