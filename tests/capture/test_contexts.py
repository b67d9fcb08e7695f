"""Births of autocast and gradient contexts: the line that holds each value."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.capture.launching import Captured, request, write
from warpline.capture.runner.births.contexts import Contexts
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.steps.signals import Signals

CONFIG = """\
import torch
from dataclasses import dataclass

@dataclass
class Config:
    dtype: torch.dtype = torch.bfloat16
    amp: bool = True
    grad: bool = True

config = Config(amp=True)
options = {
    "device_type": "cpu",
    "dtype": torch.bfloat16,
}
"""
SCRIPT = """\
import torch
from config import config, options
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

@torch.no_grad()
def mean():
    return [one.mean() for one in net.parameters()]

@torch.jit.script
def scripted(x):
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        return torch.mm(x, x)

def cast(**named):
    return torch.autocast(**named)

print(scripted(torch.ones(4, 4)).dtype, mean()[0].requires_grad)
while True:
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=config.dtype, enabled=config.amp):
        loss = net(torch.randn(4, 16)).sum()
    with cast(**options), torch.set_grad_enabled(config.grad):
        loss = loss + net(torch.randn(4, 16)).float().sum()
    loss.backward()
    mean()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("contexts")
    write(folder, CONFIG, "config.py")
    return Captured(request(write(folder, SCRIPT), warmup=2), folder)


def line(text: str, part: str) -> int:
    return next(at for at, one in enumerate(text.splitlines(), 1) if part in one)


def test_each_context_has_one_site(captured: Captured) -> None:
    found = {(site.kind, site.line): site.facts for site in captured.facts.sites}
    half = {"device": "cpu", "dtype": "bfloat16", "enabled": True}
    assert found["autocast", line(SCRIPT, "config.amp")] == half
    assert found["autocast", line(SCRIPT, "return torch.autocast")] == half
    assert found["grad_mode", line(SCRIPT, "config.grad")] == {"type": "set_grad_enabled", "mode": True}
    assert found["grad_mode", line(SCRIPT, "@torch.no_grad()")]["type"] == "no_grad"
    assert len([kind for kind, _ in found if kind in ("autocast", "grad_mode")]) == 4
    assert captured.output == "torch.bfloat16 False\n", "the script sees torch as it is"


def test_the_line_that_holds_each_value(captured: Captured) -> None:
    held = {
        (site.line, argument.name): (Path(argument.holder.file).name, argument.holder.line)
        for site in captured.facts.sites
        if site.kind in ("autocast", "grad_mode")
        for argument in site.arguments
        if argument.holder is not None
    }
    direct, below = line(SCRIPT, "config.amp"), line(SCRIPT, "return torch.autocast")
    assert held == {
        (direct, "device_type"): ("train.py", direct),
        (direct, "dtype"): ("config.py", line(CONFIG, "dtype: torch.dtype")),
        (direct, "enabled"): ("config.py", line(CONFIG, "Config(amp=True)")),
        (below, "device_type"): ("config.py", line(CONFIG, '"device_type"')),
        (below, "dtype"): ("config.py", line(CONFIG, '"dtype": ')),
        (line(SCRIPT, "config.grad"), "mode"): ("config.py", line(CONFIG, "grad: bool")),
    }


def test_a_mode_that_is_watched_twice_is_still_a_signal() -> None:
    signals = Signals()
    contexts = Contexts(SimpleNamespace(user_files=UserFiles((), ())))  # type: ignore[arg-type]
    signals.install(torch)
    contexts.install(torch)
    try:
        with torch.set_grad_enabled(False):
            pass
        assert signals.evaluated
        assert [sign[0] for sign in signals.take()] == ["grad mode"]
    finally:
        contexts.remove()
        signals.remove()
