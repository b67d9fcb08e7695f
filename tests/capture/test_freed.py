"""What a step lets go of is freed with it, as without us: no frame of the script's outlives its step."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline.capture.runner.sampler import layout

SCRIPT = """\
import gc, sys, torch, weakref
net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
gc.disable()
made, late = [], set()

def failing(batch):
    raise ValueError(batch.shape)

def step(at):
    batch = torch.randn(4, 16)
    made.append((at, weakref.ref(batch)))
    loss = net(batch).sum()
    made.append((at, weakref.ref(loss)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    try:
        failing(batch)
    except ValueError:
        pass
    return (lambda: batch.sum())()

with open("late", "w") as told:
    for at in range(100_000):
        step(at)
        made = [(begun, of) for begun, of in made if of() is not None]
        for begun, _ in made:
            print(begun, file=told, flush=True)
"""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("sampled", [False, True])
def test_a_step_is_freed_at_its_end(tmp_path: Path, python: str, sampled: bool) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT), python), tmp_path, sampled=sampled)
    assert captured.manifest.captured
    assert (tmp_path / "late").read_text() == ""


class Held:
    pass


def test_the_search_for_frames_keeps_none() -> None:
    gc.disable()
    try:

        def searching() -> weakref.ref[Held]:
            held = Held()
            layout.of_this_thread()
            return weakref.ref(held)

        assert searching()() is None
    finally:
        gc.enable()
