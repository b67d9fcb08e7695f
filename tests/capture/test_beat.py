"""What a step is: told by real scripts of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline import pipeline, runs
from warpline.capture import process

START = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
"""
MODEL = START[: START.index("optimizer")]
LOADER = """\
data = torch.utils.data.TensorDataset(torch.randn(40000, 16))
loader = torch.utils.data.DataLoader(data, batch_size=16)
"""
#: name -> (script, source of the steps, line that is reached n times a step, n)
BEATS = {
    "two optimizers, one five times a step": (
        START
        + """\
other = torch.optim.Adam(nn.Linear(4, 4).parameters())
while True:
    for _ in range(5):
        optimizer.zero_grad()
        net(torch.randn(4, 16)).sum().backward()
        optimizer.step()
    other.step()
""",
        "optimizer",
        (8, 5),
    ),
    "gradients accumulated over 12 batches": (
        START
        + LOADER
        + """\
for at, (x,) in enumerate(loader):
    net(x).sum().backward()
    if at % 12 == 11:
        optimizer.step()
        optimizer.zero_grad()
""",
        "optimizer",
        (8, 12),
    ),
    "inference from a loader": (
        MODEL
        + LOADER
        + """\
with torch.no_grad():
    for (x,) in loader:
        net(x)
        net(x)
""",
        "loader",
        (8, 1),
    ),
    "inference without one": (
        MODEL
        + """\
with torch.no_grad():
    while True:
        net(torch.randn(4, 16)).sum()
""",
        "forward",
        (6, 1),
    ),
    "inference with a model that is made again in each step": (
        MODEL
        + """\
class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = net, nn.Linear(4, 1)
    def forward(self, x):
        return self.head(self.net(x))
def scored():
    class Local(Scored):
        pass
    return Local()
with torch.no_grad():
    while True:
        x = torch.randn(4, 16)
        scored()(x).sum()
        scored()(-x).sum()
        nn.Linear(16, 1)(x).sum()
""",
        "forward",
        (16, 1),
    ),
    "inference with models that only a collection frees": (
        MODEL
        + """\
class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
        self.register_forward_hook(self.note)
    def note(self, *call):
        pass
    def forward(self, x):
        return self.net(x)
with torch.no_grad():
    while True:
        Traced()(torch.randn(4, 16)).sum()
""",
        "forward",
        (15, 1),
    ),
    "inference with the latest of many models": (
        MODEL
        + """\
made = 0
with torch.no_grad():
    while True:
        made += 1
        if made % 70 == 0:
            net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        net(torch.randn(4, 16)).sum()
""",
        "forward",
        (10, 1),
    ),
    "a policy that acts 700 times before each update": (
        START
        + """\
while True:
    with torch.no_grad():
        for _ in range(700):
            net(torch.randn(4, 16))
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
""",
        "optimizer",
        (8, 700),
    ),
    "an optimizer for each weight, in the hook of its gradient": (
        MODEL
        + LOADER
        + """\
owners = {p: torch.optim.AdamW([p], fused=True) for p in net.parameters()}
def apply(p):
    owners[p].step()
    owners[p].zero_grad()
for p in owners:
    p.register_post_accumulate_grad_hook(apply)
for (x,) in loader:
    net(x).sum().backward()
""",
        "backward",
        (8, 4),
    ),
    "an optimizer for each task": (
        MODEL
        + """\
while True:
    tuned = nn.Linear(16, 16)
    optimizer = torch.optim.Adam(tuned.parameters(), lr=1e-2)
    for _ in range(4):
        optimizer.zero_grad()
        net(tuned(torch.randn(4, 16))).sum().backward()
        optimizer.step()
""",
        "optimizer",
        (9, 1),
    ),
    "a range named step, in the hook of a gradient": (
        START
        + """\
def scaled(gradient):
    with torch.profiler.record_function("step"):
        return gradient * 0.5
while True:
    loss = net(torch.randn(4, 16)).sum()
    loss.register_hook(scaled)
    loss.backward()
    optimizer.step()
""",
        "optimizer",
        (9, 1),
    ),
    "a function whose backward pass trains another model": (
        START
        + """\
other = nn.Linear(16, 16)
class Observed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad(), torch.profiler.record_function("train_step"):
            torch.autograd.backward(other(torch.randn(4, 16)).sum())
        return gradient
while True:
    Observed.apply(net(torch.randn(4, 16))).sum().backward()
    optimizer.step()
""",
        "optimizer",
        (15, 1),
    ),
    "a model that acts for long before it is trained": (
        START
        + """\
import time
begin = time.monotonic()
with torch.no_grad():
    while time.monotonic() < begin + 1:
        net(torch.randn(4, 16))
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
""",
        "optimizer",
        (11, 1),
    ),
    "data made by a model before there is an optimizer": (
        MODEL
        + """\
with torch.no_grad():
    wanted = [net(torch.randn(4, 16)) for _ in range(3000)]
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
""",
        "optimizer",
        (7, 1),
    ),
    "features of all batches before there is an optimizer": (
        MODEL
        + LOADER
        + """\
def train(head):
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    for x in features * 20:
        head(x).sum().backward()
        optimizer.step()
features = [net(x).detach() for (x,) in loader]
train(nn.Linear(4, 1))
""",
        "optimizer",
        (9, 1),
    ),
    "gradient descent by hand, after a first look": (
        MODEL
        + """\
for _ in range(50):
    net(torch.randn(4, 16))
while True:
    net(torch.randn(4, 16)).sum().backward()
    with torch.no_grad():
        for weight in net.parameters():
            weight -= 1e-3 * weight.grad
            weight.grad = None
""",
        "backward",
        (7, 1),
    ),
    "a simulation in frames of substeps": (
        """\
import torch
x = torch.rand(64, 64)
for frame in range(300):
    for _ in range(8):
        x = x + 0.01 * torch.sin(x @ x)
""",
        "loop",
        (5, 8),
    ),
    "a planner that rolls a model out": (
        MODEL
        + """\
def plan(x):
    for _ in range(9):
        x = net(x).sum(1, keepdim=True).expand(4, 16)
    return x
with torch.no_grad():
    x = torch.randn(4, 16)
    while True:
        x = plan(x)
""",
        "loop",
        (6, 9),
    ),
    "a range named step": (
        START
        + """\
while True:
    with torch.profiler.record_function("step"):
        for _ in range(3):
            net(torch.randn(4, 16)).sum().backward()
            optimizer.step()
""",
        "mark",
        (9, 3),
    ),
}


@pytest.mark.parametrize("name", BEATS)
def test_beat(name: str, tmp_path: Path) -> None:
    text, source, (line, times) = BEATS[name]
    captured = Captured(request(write(tmp_path, text), steps=2), tmp_path)
    assert captured.manifest.step_source == source
    assert len(captured.manifest.captured) == 2
    found = captured.lines()["train.py", line]
    assert found >= 2 * times
    assert found % (2 * times) == 0 or name.startswith("inference"), "reached equally often in each step"


@pytest.mark.parametrize(
    "text",
    [
        "net(torch.randn(4, 16))",
        "net(torch.randn(4, 16)).sum().backward()",
    ],
    ids=["inference", "gradients only"],
)
def test_another_line_makes_the_steps_while_they_are_timed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What marked them before is not heard again."""
    monkeypatch.setattr(process, "SILENT_S", 2.0)
    loop = f"for _ in range(45):\n    time.sleep(0.005)\n    {text}\n"
    later = loop.replace("45", "10**9").replace("net(", "other(")
    script = "import time\n" + MODEL + "other = nn.Linear(16, 4)\n" + loop + later
    captured = Captured(request(write(tmp_path, script), timeout_s=60.0), tmp_path)
    assert len(captured.manifest.captured) == 3
    assert captured.lines()["train.py", len(script.splitlines())] >= 2
    assert captured.output == ""


def test_an_optimizer_that_is_never_used_is_not_waited_for_twice(tmp_path: Path) -> None:
    text = START + "with torch.no_grad():\n    for _ in range(40):\n        net(torch.randn(4, 16))\n"
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.manifest.step_source == "forward"
    assert len(captured.manifest.captured) == 3
    assert captured.manifest.notes[0].startswith("the script makes only 40 steps")


def test_few_steps_are_measured_in_a_second_run(tmp_path: Path) -> None:
    text = START + "for _ in range(7):\n    net(torch.randn(4, 16)).sum().backward()\n    optimizer.step()\n"
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.manifest.step_source == "optimizer"
    assert len(captured.manifest.captured) == 1
    assert len(captured.manifest.timed_ns) >= 1
    assert captured.manifest.notes == (
        "the script makes only 7 steps: it was run a second time, with shorter windows",
    )


@pytest.mark.process
def test_of_three_steps_none_has_the_imports_of_the_first(tmp_path: Path) -> None:
    """What the first step alone does is long beside the others, and no line of theirs."""
    write(tmp_path, "import time\ntime.sleep(1)\n", "slow_to_import.py")
    step = "    import slow_to_import\n    net(torch.randn(4, 16)).sum().backward()\n    optimizer.step()\n"
    run, report = pipeline.profile(
        request(write(tmp_path, START + "for _ in range(3):\n" + step)), folder=tmp_path / "runs"
    )
    assert len(runs.manifest(run).captured) == 1
    assert report.steps.step_ms < 500
    assert all(line.step_ms < 0.5 * report.steps.step_ms for line in report.lines if line.line == 6)
    assert {7, 8} <= {line.line for line in report.lines}


def test_of_three_steps_the_first_is_surveyed(tmp_path: Path) -> None:
    """From its first forward on: what comes before is not known to be part of a step."""
    text = START + "for _ in range(3):\n    net(torch.randn(4, 16)).sum().backward()\n    optimizer.step()\n"
    run = Captured(request(write(tmp_path, text)), tmp_path)
    assert (len(run.manifest.timed_ns), len(run.manifest.captured)) == (1, 1)
    assert run.facts.dataflow.missing == ""
    assert "aten.sum.default" in run.facts.dataflow.names
    assert not [name for name in run.facts.dataflow.names if "uniform" in name], (
        "the model's making is no step"
    )
    assert run.facts.flags.surveyed_ms is not None


def test_a_script_without_steps_is_measured_as_a_whole(tmp_path: Path) -> None:
    text = (
        "import torch\nx = torch.ones(50, 50)\nfor _ in range(9):\n    x = torch.tanh(x @ x)\nprint('end')\n"
    )
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    assert captured.manifest.step_source == "whole"
    assert len(captured.manifest.timed_ns) == len(captured.manifest.captured) == 1
    assert captured.lines()["train.py", 4] == 9
    assert captured.manifest.notes[0].startswith("the script makes no steps")


@pytest.mark.parametrize("whole_run", [True, False])
def test_that_it_failed_later_is_noted(tmp_path: Path, whole_run: bool) -> None:
    steps = 4_000 if whole_run else 40_000
    text = START + (
        f"try:\n    for at in range({steps}):\n        net(torch.randn(4, 16)).sum().backward()\n"
        "        optimizer.step()\n    print('all')\nfinally:\n    {}['planted']\n"
    )
    captured = Captured(request(write(tmp_path, text), whole_run=whole_run, warmup=1), tmp_path)
    assert captured.manifest.notes == ("train.py failed with KeyError after it was measured",)
    assert captured.manifest.exit_status == 1
    assert captured.output.splitlines()[-1] == "KeyError: 'planted'"
    assert captured.output.startswith("all\n") is whole_run, "only then it goes on to its end"


def test_an_exit_that_answers_our_interruption_is_no_failure(tmp_path: Path) -> None:
    """Lightning's `fit` exits with status 1 where it is interrupted, as it is once all is measured."""
    text = START + (
        "import sys\ntry:\n    for at in range(40_000):\n        net(torch.randn(4, 16)).sum().backward()\n"
        "        optimizer.step()\nexcept KeyboardInterrupt:\n    sys.exit(1)\n"
    )
    captured = Captured(request(write(tmp_path, text), warmup=1), tmp_path)
    assert captured.manifest.notes == ()
    assert captured.manifest.exit_status is None
