"""The runner needs no numpy, and touches nothing that would load it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write

BLOCK = """\
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] == "numpy" else find(name, path, target)
PathFinder.find_spec = staticmethod(find_spec)
"""
TEXT = """\
import torch
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_without_numpy(tmp_path: Path, python: str) -> None:
    packages, project = tmp_path / "packages", tmp_path / "project"
    packages.mkdir()
    project.mkdir()
    write(packages, BLOCK, "sitecustomize.py")
    asked = request(write(project, TEXT), python)
    asked.environment["PYTHONPATH"] = str(packages)
    captured = Captured(asked, tmp_path)
    assert captured.manifest.step_source == "optimizer"
    assert captured.lines()["train.py", 5] == 3
    assert captured.facts.losses
