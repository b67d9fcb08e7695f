"""A script that is stopped between two batches takes its loader workers with it."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline.capture.runner.workers import ending

AT_THE_TOP_LEVEL = """
import atexit
import multiprocessing
import torch

def tell():
    print("workers left:", len(multiprocessing.active_children()))

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(4096, 8))
more = {"persistent_workers": True, "prefetch_factor": 8, "multiprocessing_context": "fork"}
loader = torch.utils.data.DataLoader(data, 4, num_workers=2, **more)
batches = iter(loader)
atexit.register(tell)  # runs before what torch has registered with its iterator
for epoch in range(100):
    for (x,) in batches:
        model(x).square().mean().backward()
        optimizer.step()
    batches = iter(loader)
"""


@pytest.mark.process
def test_a_loader_whose_workers_were_ended_starts_new_ones() -> None:
    """As a handler for the interpreter's exit may ask of it."""
    before = set(multiprocessing.active_children())
    loader = DataLoader(TensorDataset(torch.arange(4)), num_workers=1, persistent_workers=True)
    first = [value.item() for (value,) in loader]
    (worker,) = set(multiprocessing.active_children()) - before
    ending.end()
    assert not worker.is_alive()
    assert [value.item() for (value,) in loader] == first
    ending.end()


@pytest.mark.parametrize("python", PYTHONS)
def test_workers_of_a_loop_at_the_top_level_end_with_it(tmp_path: Path, python: str) -> None:
    captured = Captured(request(write(tmp_path, AT_THE_TOP_LEVEL), python), tmp_path)
    assert "workers left: 0" in captured.output
    assert "Traceback" not in captured.output
