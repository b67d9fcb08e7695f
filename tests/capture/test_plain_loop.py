"""One plain training loop, on every interpreter: the run folder is complete and says what happened."""

from __future__ import annotations

import json

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write

LOOP = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 64)
        self.b = nn.Linear(64, 8, bias=False)
    def forward(self, x):
        h = torch.relu(self.a(x))
        return self.b(h)

net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(40000, 64), torch.randint(0, 8, (40000,)))
loader = torch.utils.data.DataLoader(data, batch_size=16)
try:
    for x, y in loader:
        optimizer.zero_grad()
        x.to("meta")
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
finally:
    print("finally")
"""


@pytest.fixture(scope="module")
def loop(request_: str, tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("loop")
    return Captured(request(write(folder, LOOP), request_, argv=("1", "zwei")), folder)


@pytest.fixture(scope="module", params=PYTHONS)
def request_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_folder_is_complete(loop: Captured) -> None:
    names = {entry.name for entry in loop.run.iterdir()}
    assert names >= {
        "manifest.json",
        "facts.json",
        "lines.bin",
        "locations.json",
        "sources.json",
        "trace.json",
    }
    trace = json.loads((loop.run / "trace.json").read_text())
    assert any(event.get("name") == "aten::addmm" for event in trace["traceEvents"])
    assert not [entry.name for entry in loop.run.parent.iterdir() if "partial" in entry.name]


def test_the_windows(loop: Captured) -> None:
    manifest = loop.manifest
    assert manifest.step_source == "optimizer"
    assert len(manifest.timed_ns) >= 10
    assert all(duration > 0 for duration in manifest.timed_ns)
    assert len(manifest.captured) == 3
    assert all(a[1] == b[0] for a, b in zip(manifest.captured, manifest.captured[1:], strict=False))
    assert manifest.argv == ("1", "zwei")
    assert manifest.notes == ()


def test_each_line_of_the_step_is_recorded_as_often_as_it_ran(loop: Captured) -> None:
    lines = loop.lines()
    for line in (19, 20, 21, 22, 23):
        assert lines["train.py", line] >= 3, line
    assert lines["train.py", 10] == 3
    assert lines["train.py", 11] == 3
    assert lines["train.py", 21] == 6, "reached, and come back to from forward"


def test_the_script_is_stopped_as_by_ctrl_c_and_silently(loop: Captured) -> None:
    assert loop.output == "finally\n"


def test_progress_comes_in_order(loop: Captured) -> None:
    stages = list(dict.fromkeys(progress.stage for progress in loop.progress))
    assert stages == ["starting", "waiting", "warmup", "timing", "capturing", "writing", "ending"]


def test_sites(loop: Captured) -> None:
    sites = {(site.kind, site.line): site for site in loop.facts.sites}
    loader = sites["loader", 16]
    assert loader.facts["num_workers"] == 0
    assert loader.facts["batches_per_epoch"] == 2500
    assert loader.uses == ((str(loop.run.parent / "train.py"), 18),)
    optimizer = sites["optimizer", 14]
    assert optimizer.facts["type"] == "AdamW"
    assert optimizer.facts["parameters"] == 3
    assert optimizer.uses == ((str(loop.run.parent / "train.py"), 23),)
    assert sites["module", 8].facts["type"] == "Linear"
    assert sites["module", 8].facts["bias"] is False
    assert sites["module", 7].facts["bias"] is True
    moved = sites["to", 20]
    assert moved.facts["bytes"] == 16 * 64 * 4
    assert moved.facts["calls"] == 1
    assert moved.facts["non_blocking"] is False


def test_facts(loop: Captured) -> None:
    facts = loop.facts
    assert facts.flags.grad_enabled_in_step is True
    assert facts.flags.autocast is False
    assert (facts.memory.peak_bytes or 0) > 0
    assert (facts.cores.window_ns or 0) >= sum(loop.manifest.timed_ns)
    assert (facts.cores.used_ns or 0) > 0
    assert len(facts.losses) >= 2
    assert all(0 < loss < 100 for loss in facts.losses)
    sources = json.loads((loop.run / "sources.json").read_text())
    assert sources[str(loop.run.parent / "train.py")] == LOOP
