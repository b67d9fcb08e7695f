"""Tensors of one length that each step copies, known by what the next step reads in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.rulekit.graph.recording import two_steps
from warpline.rulekit.graph.rings import rings

torch = pytest.importorskip("torch")

WEIGHTS = torch.randn(16, 16)
BATCHES = [torch.randn(64, 16) for _ in range(3)]


class Held:
    """What is kept from step to step, and how a step changes it."""

    def __init__(self, change: Callable[[Any, Any], Any]) -> None:
        self.queue, self.change = torch.randn(1024, 16), change

    def __call__(self, at: int) -> Any:
        with torch.no_grad():
            rows = BATCHES[at][:16] @ WEIGHTS
            found = rows @ self.queue.T
            self.queue = self.change(self.queue, rows)
        return found


def shares(change: Callable[[Any, Any], Any]) -> dict[str, float]:
    return {node.name: round(share, 3) for node, share in rings(two_steps(Held(change))).items()}


def joined(queue: Any, rows: Any) -> Any:
    return torch.cat([queue, rows])


def written(queue: Any, rows: Any) -> Any:
    queue[:16] = rows
    return queue


def rolled(queue: Any, rows: Any) -> Any:
    queue = torch.roll(queue, 16, 0)
    queue[:16] = rows
    return queue


def copied_back(queue: Any, rows: Any) -> Any:
    queue[:] = torch.cat([queue[16:], rows])
    return queue


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda queue, rows: joined(queue, rows)[-1024:], {"cat": 0.015}),
        (lambda queue, rows: torch.cat([rows, queue])[:1024], {"cat": 0.015}),
        (lambda queue, rows: torch.cat([queue[16:], rows]), {"cat": 0.016}),
        (lambda queue, rows: torch.vstack([queue[16:], rows]).detach(), {"cat": 0.016}),
        (lambda queue, rows: joined(queue, rows)[-1024:].clone(), {"cat": 0.015}),
        (copied_back, {"cat": 0.016}),
        (rolled, {"roll": 0.016}),
    ],
)
def test_what_goes_from_step_to_step_at_one_length(
    change: Callable[[Any, Any], Any], found: dict[str, float]
) -> None:
    assert shares(change) == found


@pytest.mark.parametrize(
    "change",
    [
        joined,  # it grows
        written,
        lambda queue, rows: queue,
        lambda queue, rows: torch.cat([torch.randn(1008, 16), rows]),  # a new one each time
        lambda queue, rows: torch.roll(queue, 1024, 0),  # not a move
        lambda queue, rows: queue * 0.9,
    ],
)
def test_others(change: Callable[[Any, Any], Any]) -> None:
    assert shares(change) == {}


def test_batches_that_are_shifted_are_no_state() -> None:
    """The next step reads another batch."""
    start = torch.zeros(1, 16)
    assert rings(two_steps(lambda at: torch.cat([start, BATCHES[at]])[:-1] @ WEIGHTS)) == {}
