"""Steps that live on batches which loader workers made before are no steps to time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture.launching import request, write
from warpline.capture.runner.waits.queues import Queues, emptying
from warpline.capture.runner.windows import lengths


def steps(count: int, step: float, batch: float, workers: int, ahead: int = 2) -> list[tuple[int, int]]:
    """What a queue shows after each of ``count`` steps of ``step`` seconds, if it was full before, and one
    worker takes ``batch`` seconds for a batch."""
    done = [0.0] * (ahead * workers)  # when batch n is ready
    free = [0.0] * workers
    now, seen = 0.0, []
    for number in range(count):
        now = max(now, done[number]) + step
        free[number % workers] = max(free[number % workers], now - step) + batch
        done.append(free[number % workers])
        waiting = done[number + 1 :]
        ready = sum(one <= now for one in waiting)
        seen.append((ready, min(workers, len(waiting) - ready)))
    return seen


def settles(seen: list[tuple[int, int]], workers: int) -> int:
    """Number of the first step after which the queue does not get emptier."""
    return next(at for at in range(1, len(seen) + 1) if not emptying(seen[:at], workers))


@pytest.mark.parametrize(("workers", "slower"), [(2, 2.0), (8, 2.5), (12, 2.0), (16, 1.5)])
def test_slow_workers_are_seen_once_their_queue_is_empty(workers: int, slower: float) -> None:
    step = 0.1
    seen = steps(200, step, workers * step * slower, workers)
    empty = next(at for at, (ready, _) in enumerate(seen) if ready == 0)
    assert settles(seen, workers) == empty + 1 + workers


@pytest.mark.parametrize(("workers", "quicker"), [(1, 0.5), (4, 0.2), (8, 0.7), (12, 0.9), (16, 0.1)])
def test_workers_that_keep_up_are_seen_early(workers: int, quicker: float) -> None:
    step = 0.1
    seen = steps(200, step, workers * step * quicker, workers)
    assert settles(seen, workers) <= max(5, 2 * workers)
    if quicker <= 0.2:
        assert settles(seen, workers) <= 8


def test_a_loader_without_workers_has_no_queue() -> None:
    assert not Queues().emptying([SimpleNamespace(_num_workers=0), SimpleNamespace(_num_workers=2)])


def test_the_warm_up_ends_all_the_same() -> None:
    quick, slow = [1_000_000] * lengths.EMPTYING_MOST, [3_000_000_000] * 5
    assert not lengths.settled(quick[1:], False, emptying=True)
    assert lengths.settled(quick, False, emptying=True)
    assert not lengths.settled(slow[1:], False, emptying=True)
    assert lengths.settled(slow, False, emptying=True)


def test_a_window_has_whole_bursts() -> None:
    assert [lengths.whole_bursts(steps, 8, 100_000_000) for steps in (8, 10, 16)] == [8, 16, 16]
    assert lengths.whole_bursts(10, 8, 1_000_000_000) == 10  # eight steps take too long
    assert lengths.whole_bursts(10, 1, 1_000_000_000) == 10


SLEEPY = """
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __len__(self):
        return 1200

    def __getitem__(self, index):
        time.sleep(0.04)
        return torch.full((4,), float(index))


if __name__ == "__main__":
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step, rows in enumerate(DataLoader(Remote(), batch_size=4, num_workers=4)):
        optimizer.zero_grad()
        model(rows).square().mean().backward()
        optimizer.step()
        time.sleep(1.5 if step == 0 else 0.01)
"""


@pytest.mark.process
def test_the_steps_of_slow_workers_are_timed(tmp_path: Path) -> None:
    """Four workers take 160 ms for a batch, so a step takes 40 ms, but the first eight after a long one
    take 10."""
    from warpline import pipeline

    _, report = pipeline.profile(request(write(tmp_path, SLEEPY)), folder=tmp_path)
    assert report.steps.step_ms == pytest.approx(40, rel=0.15)


def test_other_iterators_are_no_error() -> None:
    class Odd:
        _num_workers: Any = 3

        @property
        def _worker_result_queue(self) -> Any:
            raise OSError("handle is closed")

    assert not Queues().emptying([Odd()])
