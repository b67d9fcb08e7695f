"""Lines of libraries below the user's, through the real capture: a small package installed beside torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from warpline import attribution, trace
from warpline.model.profile import LineCost, Profile
from warpline.model.report import Inside

#: A trainer, a model of equal layers, and code that runs many lines and no operator.
PACKAGE = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(96, 96)

    def forward(self, x):
        x = self.inner(x)
        return attend(self, x)


def attend(module, x):
    return (x @ x.transpose(0, 1)) @ x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.head = nn.Sequential(nn.Linear(96, 96), nn.ReLU())

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Trainer:
    def __init__(self, model, loss, batch):
        self.model, self.loss, self.batch = model, loss, batch
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)

    def fit(self):
        while True:
            self.one()

    def one(self):
        loss = self.loss(self.model(self.batch()))
        loss.backward()
        tokens(30_000)
        self.optimizer.step()
        self.optimizer.zero_grad()


def tokens(count):
    total = 0
    for at in range(count):
        total += at
    return total
"""

SCRIPT = """\
import torch
from trainer import Model, Trainer


def batch():
    return torch.ones(96, 96) * 2


def loss(out):
    return out.square().mean()


Trainer(Model(), loss, batch).fit()
"""


def captured(tmp_path: Path, python: str, package: str = PACKAGE) -> Captured:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "trainer.py").write_text(package, encoding="utf-8")
    asked = request(write(tmp_path, SCRIPT), python)
    return Captured(
        request(
            write(tmp_path, SCRIPT), python, environment={**asked.environment, "PYTHONPATH": str(installed)}
        ),
        tmp_path,
    )


def line(profile: Profile, text: str) -> LineCost:
    number = SCRIPT.splitlines().index(text) + 1
    return next(cost for cost in profile.lines if cost.line == number)


def entry(cost: LineCost, text: str) -> Inside:
    number = [written.strip() for written in PACKAGE.splitlines()].index(text) + 1
    return next(each for each in cost.inside if each.line == number and each.file.endswith("trainer.py"))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_trainer_s_line_opens(tmp_path: Path, python: str) -> None:
    run = captured(tmp_path, python)
    profile = attribution.attribute(trace.read(run.run))
    fit = line(profile, "Trainer(Model(), loss, batch).fit()")
    assert sum(each.step_ms for each in fit.inside) == pytest.approx(fit.step_ms)
    assert sum(each.device_ms for each in fit.inside) == pytest.approx(fit.device_ms)

    attention = entry(fit, "return (x @ x.transpose(0, 1)) @ x")
    assert (attention.module, attention.function, attention.calls) == ("layers.*", "attend", 3)
    assert entry(fit, "x = self.inner(x)").module == "layers.*"
    head = entry(fit, "return self.head(x)")
    assert (head.module, head.calls) == ("", 1)
    assert entry(fit, "self.optimizer.step()").module is None
    # Backward stands at the line of its forward: the line that calls it has next to no operators.
    assert entry(fit, "loss.backward()").device_ms < 0.2 * attention.device_ms

    # Lines of the user's that the trainer calls are their own.
    assert line(profile, "    return out.square().mean()").inside == ()
    assert line(profile, "    return torch.ones(96, 96) * 2").device_ms > 0
    made_by_them = {each.line for each in fit.inside if each.file.endswith("train.py")}
    assert made_by_them <= {fit.line}


MIXED = """\
def mixed(x):
    odd = 0
    for at in range(20):
        odd += at % 2
        if at == 7:
            x = x.cos()
    return x.sin()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_lines_of_calls_like_those_recorded_in_full(tmp_path: Path, python: str) -> None:
    """A hundred calls of about 60 lines are too many; seven of them have all lines, and say those of all."""
    package = PACKAGE.replace(
        "        tokens(30_000)\n", "        for _ in range(100):\n            mixed(UNIT)\n"
    )
    package = package.split("def tokens")[0] + MIXED + "\n\nUNIT = torch.ones(96, 96)\n"
    run = captured(tmp_path, python, package)
    profile = attribution.attribute(trace.read(run.run))
    fit = line(profile, "Trainer(Model(), loss, batch).fit()")
    assert sum(each.step_ms for each in fit.inside) == pytest.approx(fit.step_ms)
    assert sum(each.device_ms for each in fit.inside) == pytest.approx(fit.device_ms)
    first = package.splitlines().index("def mixed(x):") + 1
    found = {each.line - first: each for each in fit.inside if each.function == "mixed"}
    ran = {1: 100, 2: 2100, 3: 2000, 4: 2000, 5: 100, 6: 100}
    assert {at: each.calls for at, each in found.items()} == pytest.approx(ran)
    operators = found[5].device_ms + found[6].device_ms
    assert operators == pytest.approx(sum(each.device_ms for each in found.values()))
    assert min(found[5].device_ms, found[6].device_ms) > 0.2 * operators


@pytest.mark.parametrize("python", PYTHONS)
def test_code_that_runs_too_many_lines_is_left_to_its_caller(tmp_path: Path, python: str) -> None:
    run = captured(tmp_path, python)
    assert (run.run / "inside.bin").stat().st_size < 500_000
    fit = line(attribution.attribute(trace.read(run.run)), "Trainer(Model(), loss, batch).fit()")
    assert entry(fit, "tokens(30_000)").step_ms > 0
    assert not any(each.function == "tokens" for each in fit.inside)
