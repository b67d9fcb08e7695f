"""What the user marked is in the trace; ``--nvtx`` writes ranges for steps and lines."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write

USER = """\
import torch, nvtx
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
@nvtx.annotate(domain="mine")
def forward():
    with nvtx.annotate("inner", color="blue"):
        return net(torch.randn(4, 16)).sum()
stages = nvtx.get_domain("stages")
back = stages.get_event_attributes(message="back")
while True:
    nvtx.push_range("all", domain="other")
    loss = forward()
    stages.push_range(back)
    stages.pop_range()
    with torch.profiler.record_function("by hand"):
        loss.backward()
    nvtx.pop_range(domain="other")
    optimizer.step()
"""
#: Stands in for the package: it shows what an NVTX tool would be told.
LISTENER = """\
import atexit, json
told = []
def start_range(message=None, domain=None):
    told.append(("start", message, domain, len(told)))
    return len(told) - 1
def end_range(number):
    told.append(("end", told[number][1], told[number][2], number))
atexit.register(lambda: json.dump(told, open("told.json", "w")))
"""
LINES = """\
import torch
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
def forward():
    return net(torch.randn(4, 16)).sum()
while True:
    loss = forward()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="the nvtx package is not installed")
def test_the_users_ranges(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, USER)), tmp_path)
    events = json.loads((captured.run / "trace.json").read_text())["traceEvents"]
    names = Counter(event["name"] for event in events if event.get("cat") == "user_annotation")
    for name in ("nvtx:mine:forward", "nvtx:NVTX:inner", "nvtx:other:all", "nvtx:stages:back", "by hand"):
        assert names[name] == 4, "three captured steps and the rehearsal"


def test_steps_and_lines_are_ranges_with_nvtx(tmp_path: Path) -> None:
    packages, project = tmp_path / "packages", tmp_path / "project"
    packages.mkdir()
    project.mkdir()
    write(packages, LISTENER, "nvtx.py")
    asked = request(write(project, LINES), nvtx=True)
    asked.environment["PYTHONPATH"] = str(packages)
    captured = Captured(asked, tmp_path)
    assert captured.manifest.notes == ()
    told = json.loads((project / "told.json").read_text())
    assert {domain for _, _, domain, _ in told} == {"warpline"}
    started = Counter(message for kind, message, _, _ in told if kind == "start")
    assert started["step 1"] == started["step 2"] == started["step 3"] == 1
    assert started["forward train.py:5"] >= 3
    assert started["<module> train.py:8"] >= 3
    ended = Counter(number for kind, _, _, number in told if kind == "end")
    assert set(ended.values()) == {1}, "each range ends once"
