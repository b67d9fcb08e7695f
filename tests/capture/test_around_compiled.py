"""Operators around compiled code are recorded, and its calls are single operators among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.capture.launching import Captured, request, write
from warpline.capture.runner.dataflow.mode import MOST_GIVEN, tensors_in
from warpline.rulekit.graph import Graph, Node, graph_around, whole_graph
from warpline.rulekit.graph.constants import constant_nodes
from warpline.rulekit.graph.rows import partly_used
from warpline.rulekit.graph.sorts import partly_read
from warpline.wire.dataflow import COMPILED

pytestmark = pytest.mark.usefixtures("whole_torch")

SCRIPT = """\
import sys
import torch
import torch.nn.functional as F
from torch import nn

BACKEND = "aot_eager"
torch.manual_seed(0)
table, weight = torch.randn(50, 16), torch.randn(16, 8)
counts, state, fixed = torch.ones(8), torch.ones(8), torch.ones(8)
encode = torch.compile(nn.Sequential(nn.Linear(16, 8), nn.ReLU()), backend=BACKEND)

@torch.compile(backend=BACKEND)
def bump(given):
    given.add_(1)
    counts.mul_(1.01)
    return given * 2

@torch.compile(backend=BACKEND)
def ranks(order):
    return order.float().mean()

@torch.no_grad()
def step():
    keys = F.normalize(table @ weight, dim=1)  # constant
    query = encode(torch.randn(4, 16))
    bump(state)
    scores = query @ keys.T
    best = scores.sort(descending=True).indices[:, :3]  # partly read
    order = scores.argsort()
    few = order[:, :3] + best
    mean = ranks(order)
    grown = state.exp() + counts.log()
    same = fixed.exp()  # constant
    return few.sum() * mean + grown.sum() * same.sum()

while True:
    step()
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("around")
    captured = Captured(request(write(folder, SCRIPT)), folder)
    flow = captured.facts.dataflow
    assert flow.around, flow.missing
    assert whole_graph(flow) is None
    found = graph_around(flow)
    assert found is not None
    return found


def lines(graph: Graph, nodes: Sequence[Node]) -> set[str]:
    text = SCRIPT.splitlines()
    return {text[site.line - 1].strip() for node in nodes if (site := graph.site(node)) is not None}


def test_a_compiled_call_is_one_operator(graph: Graph) -> None:
    calls = [node for node in graph.nodes if graph.flow.names[graph.flow.name[node.index]] == COMPILED]
    assert [graph.shape(node.outputs[0]) for node in calls] == [(4, 8), (8,), ()]
    encode, bump, ranks = calls
    (product,) = [node for node in graph.nodes if node.name == "mm" and encode.outputs[0] in node.inputs]
    assert graph.shape(product.outputs[0]) == (4, 50)
    assert lines(graph, [bump, ranks]) == {"bump(state)", "mean = ranks(order)"}
    (written,) = [node for node in graph.nodes if node.name == "written"]
    assert graph.origin(bump.inputs[0]) == graph.origin(written.inputs[0])


def test_what_compiled_code_writes_to_is_no_constant(graph: Graph) -> None:
    assert lines(graph, constant_nodes(graph)) == {
        "keys = F.normalize(table @ weight, dim=1)  # constant",
        "same = fixed.exp()  # constant",
    }


def test_what_compiled_code_reads_is_read_whole(graph: Graph) -> None:
    assert lines(graph, [one.node for one in partly_read(graph)]) == {
        "best = scores.sort(descending=True).indices[:, :3]  # partly read"
    }


LOGITS = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 16)
    def forward(self, x):
        return torch.tanh(self.a(x))

block, used, all_used = Block(), nn.Linear(16, 500), nn.Linear(16, 600)
block.compile(backend="aot_eager")
optimizer = torch.optim.SGD([*block.parameters(), *used.parameters(), *all_used.parameters()], lr=1e-3)

@torch.compile(backend="aot_eager")
def spread(scores):
    return scores.logsumexp(1).mean(), scores

while True:
    hidden = block(torch.randn(32, 16))
    scores, others = used(hidden), all_used(hidden)
    more, others = spread(others)
    loss = scores[torch.arange(4)].log_softmax(1).mean() + others[torch.arange(4)].mean() + more
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_logits_behind_a_compiled_block_and_those_that_compiled_code_returns(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, LOGITS)), tmp_path)
    found = graph_around(captured.facts.dataflow)
    assert found is not None
    assert [(one.rows, one.columns, one.used) for one in partly_used(found, 0.5)] == [(32, 500, 4)]


class Trainer:
    def __init__(self, samples: int) -> None:
        self.itself, self.samples = self, [[i] for i in range(samples)]
        self.scale, self.weights = torch.ones(1), {"a": torch.ones(2)}


def test_tensors_are_found_in_objects_once() -> None:
    trainer = Trainer(100)
    found = tensors_in([(trainer, 1), {"again": trainer}])
    assert [id(one) for one in found] == [id(trainer.scale), id(trainer.weights["a"])]


def test_an_object_that_holds_a_dataset_is_not_searched() -> None:
    with pytest.raises(OverflowError):
        tensors_in([(Trainer(MOST_GIVEN), 1)])
