"""Constants in the script's own tensors, known by a second step that computes the same of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.rulekit.graph.recording import two_steps
from warpline.rulekit.graph.constants import constant_nodes

torch = pytest.importorskip("torch")
F = torch.nn.functional

TABLE, WEIGHTS = torch.randn(20, 16), torch.nn.Parameter(torch.randn(16, 16))
BATCHES = [torch.randn(8, 16) for _ in range(4)]
LAYER = torch.nn.Linear(16, 16)
GRADED = torch.nn.Linear(16, 16)
OPTIMIZER = torch.optim.AdamW(GRADED.parameters(), foreach=True)


def names(step: Callable[[int], Any]) -> set[str]:
    return {node.name for node in constant_nodes(two_steps(step))}


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (lambda at: BATCHES[at] @ F.softmax(TABLE, 1).T, {"_softmax"}),
        (lambda at: BATCHES[at] @ torch.linalg.inv_ex(TABLE.T @ TABLE)[0], {"mm", "linalg_inv_ex"}),
        (lambda at: BATCHES[at] @ (TABLE * (TABLE > 0)).T, {"gt", "mul"}),
        (lambda at: BATCHES[at] @ TABLE[2:9].exp().T, {"exp"}),
        (lambda at: F.linear(BATCHES[at], LAYER(TABLE)), {"addmm"}),  # of parameters that stay
        (lambda at: BATCHES[at] @ torch.einsum("ij,kj->ik", TABLE, TABLE)[:, :16].T, {"bmm"}),
    ],
)
def test_what_depends_on_kept_tensors_alone(step: Callable[[int], Any], found: set[str]) -> None:
    with torch.no_grad():
        assert found <= names(step)
        assert "addmm" in found or not {"addmm"} & names(step)


def test_a_list_that_is_not_recorded_may_have_other_tensors_in_each_step() -> None:
    def step(at: int, few: int) -> Any:
        kept = torch.stack([TABLE.exp()] * few).sum(0)
        return torch.stack([BATCHES[at] + row for row in range(few)]).sum(0) @ kept.T

    with torch.no_grad():
        assert names(lambda at: step(at, 9)) == {"exp", "stack", "sum"}
        assert names(lambda at: step(at, 99)) == {"exp"}


EDGES = torch.randint(20, (2, 60))


def adjacency(edges: Any) -> Any:
    """Parallel edges count once; rows add up to one."""
    whole = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (20, 20)).coalesce()
    degree = torch.sparse.sum(whole, 1).to_dense()
    return torch.sparse_coo_tensor(whole.indices(), whole.values() / degree[whole.indices()[0]], (20, 20))


def on_one_graph(at: int) -> None:
    """All nodes in every step: only the parameters change."""
    loss = (adjacency(EDGES).to_sparse_csr() @ GRADED(TABLE)).sum()
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()


STATE = torch.zeros(20)


def simulated(at: int) -> None:
    """No batch at all: a state that each step writes to."""
    STATE.lerp_(torch.cdist(TABLE, TABLE).exp() @ STATE, 0.1)


def test_data_that_never_changes_beside_a_state_that_does() -> None:
    assert {"_sparse_coo_tensor_with_dims_and_tensors", "_coalesce", "div", "_to_sparse_csr"} <= names(
        on_one_graph
    )
    assert {"_cdist_forward", "exp"} <= names(simulated)
    assert not {"addmm", "mm", "lerp_", "lerp"} & (names(on_one_graph) | names(simulated))


def distilled(at: int) -> None:
    """A frozen teacher, on the only batch: others may come."""
    with torch.no_grad():
        guide = LAYER(TABLE)
    (GRADED(TABLE.exp()) - guide).square().sum().backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


def test_a_frozen_model_on_the_only_batch_is_no_constant() -> None:
    assert "exp" in names(distilled)
    assert "addmm" not in names(distilled)


def test_a_graph_that_is_another_in_each_step() -> None:
    edges = [torch.randint(20, (2, 60)) for _ in range(2)]
    assert not {"_coalesce", "div"} & names(lambda at: adjacency(edges[at]) @ TABLE)


def trained(at: int) -> None:
    loss = (GRADED(BATCHES[at]) @ GRADED.weight.exp()).sum()
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()


VIEWS = torch.randn(40, 16).split(8)


def of_views(at: int) -> Any:
    """A view that stays, and beside it one that does not, of the same memory."""
    return VIEWS[0] @ VIEWS[1 + at].exp().T @ BATCHES[at]


def grown(at: int) -> Any:
    TABLE.add_(1e-3)
    return BATCHES[at] @ TABLE.exp().T


@pytest.mark.parametrize(
    "step",
    [
        lambda at: BATCHES[at].exp(),  # another batch of a list
        lambda at: BATCHES[0].exp() @ WEIGHTS,  # a benchmark: all of it
        lambda at: BATCHES[at] @ TABLE[at : at + 5].exp().T,  # a window that moves
        lambda at: BATCHES[at] @ (TABLE * (0.1 * at)).T,  # a number that changes
        lambda at: BATCHES[at] @ TABLE[torch.randint(20, (5,))].exp().T,
        lambda at: BATCHES[at] @ F.dropout(TABLE, 0.5).T,
        lambda at: BATCHES[at] @ WEIGHTS.to(torch.float64).float(),  # a cast of a parameter
        of_views,
        grown,
        trained,
    ],
)
def test_what_may_be_another_in_the_next_step(step: Callable[[int], Any]) -> None:
    assert names(step) - {"ones_like"} == set()


def _of_a_worker(at: int) -> Any:
    """A batch as it arrives: an empty tensor that is set to the memory of another process."""
    with torch.no_grad():
        return torch.empty(0).set_(BATCHES[at].untyped_storage(), 0, (8, 16), (16, 1))


def test_batches_of_workers_are_others_in_each_step() -> None:
    assert "log1p" not in names(lambda at: GRADED(torch.log1p(_of_a_worker(at).abs())).sum())


ARRAY = np.linspace(0, 1, 320, dtype=np.float32).reshape(20, 16)


def made(step: Callable[[int], Any]) -> tuple[set[str], int]:
    """What is constant, and how many tensors the host makes outside torch again."""
    graph = two_steps(step)
    return {node.name for node in constant_nodes(graph)}, len(graph.flow.remade)


def normed(at: int) -> Any:
    """The only batch, of an array, and a frozen model of it."""
    with torch.no_grad():
        guide = LAYER(torch.from_numpy(ARRAY.copy()).exp())
    (GRADED(TABLE) - guide).square().sum().backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


@pytest.mark.parametrize(
    ("step", "found", "count"),
    [
        (lambda at: BATCHES[at] @ torch.from_numpy(ARRAY.copy()).exp().T, {"exp"}, 1),
        (lambda at: BATCHES[at] @ torch.tensor(ARRAY.tolist()).exp().T, {"exp"}, 1),
        (lambda at: BATCHES[at] @ torch.FloatTensor(ARRAY.tolist()).T, set(), 1),
        (lambda at: BATCHES[at] @ torch.from_numpy(ARRAY).exp().T, {"exp"}, 1),
        (lambda at: BATCHES[at] @ torch.from_numpy(ARRAY + at).exp().T, set(), 0),
        (lambda at: BATCHES[at] + torch.tensor([1.0, 0.0] * 8).exp(), set(), 0),  # flags
        (lambda at: BATCHES[at] + torch.tensor([3, 1, 2, 3] * 4).exp(), set(), 0),  # lengths
        (lambda at: BATCHES[at] @ TABLE.exp().T, {"exp"}, 0),
        (normed, {"exp"}, 1),
    ],
)
def test_what_the_host_makes_of_arrays_and_lists(
    step: Callable[[int], Any], found: set[str], count: int
) -> None:
    assert made(step) == (found, count)
