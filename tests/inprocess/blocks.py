"""Run by the tests: profiled blocks of one process, and what became of them, as JSON on the last line."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import torch

import warpline
from tests.inprocess.hooks import hooks, left
from warpline.inprocess.run import Run

model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(3)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
told: dict[str, Any] = {}


def step() -> None:
    optimizer.zero_grad()
    model(torch.ones(64, 128)).pow(2).mean().backward()
    optimizer.step()


def train(steps: int) -> int:
    for _ in range(steps):
        step()
    return steps


def remember(name: str, run: Run) -> None:
    lines = {}
    if run.path is not None:
        report = run.report()
        lines = {f"{line.function}:{line.line}": line.step_ms for line in report.lines}
        told[name] = {"steps": report.steps.captured, "step_ms": report.steps.step_ms}
    told[name] = {**told.get(name, {}), "path": str(run.path or ""), "problem": run.problem, "lines": lines}


train(2)
with warpline.profile(few=8, show=False) as run:  # what torch and we import once is imported
    train(8)
before = hooks()

with warpline.profile() as run:
    train(1500)
told["left by a long block"] = left(before, hooks())
remember("long", run)

for steps in (12, 6):
    with warpline.profile(few=steps, show=False) as run:
        train(steps)
    told[f"left by {steps} steps"] = left(before, hooks())
    remember(f"{steps} steps", run)

with warpline.profile(show=False) as run:
    train(5)
told["left by a short block"] = left(before, hooks())
remember("short", run)

with warpline.profile(show=False) as run:
    train(60)  # ends in the timing window
told["left by a block of 60 steps"] = left(before, hooks())
remember("timing", run)

for made in (0, 1, 6, 9):  # it fails in each of the windows
    try:
        with warpline.profile(few=12, show=False) as run:
            train(made)
            raise KeyError(made)
    except KeyError as error:
        told[f"raised after {made}"] = error.args[0]
    told[f"left by {made} and an exception"] = left(before, hooks())
remember("failed", run)

with warpline.profile(few=8, show=False) as run:
    total = torch.zeros(64, 64)
    for _ in range(8):
        total = total @ total
        run.step()
told["left by marks"] = left(before, hooks())
remember("marks", run)

with warpline.profile(few=8, show=False) as run, warpline.profile(few=8, show=False) as inner:
    train(8)
remember("outer", run)
remember("inner", inner)


def in_thread() -> None:
    with warpline.profile(few=12, show=False) as threads:
        train(12)
    remember("thread", threads)


thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
told["left by a thread"] = left(before, hooks())


@warpline.profile(few=12, show=False)
def decorated(steps: int) -> int:
    """Documented."""
    return train(steps)


told["returned"] = [decorated(2), decorated(12)]
remember("decorated", decorated.run)  # type: ignore[attr-defined]
first = decorated.run  # type: ignore[attr-defined]
decorated(12)
told["measured once"] = decorated.run is first  # type: ignore[attr-defined]
told["called"] = [decorated.__name__, decorated.__doc__]


@warpline.profile(few=12, show=False)
async def awaited() -> int:
    await asyncio.sleep(0)
    return train(12)


told["returned"].append(asyncio.run(awaited()))
remember("awaited", awaited.run)  # type: ignore[attr-defined]
told["left at the end"] = left(before, hooks())
print(json.dumps(told))
