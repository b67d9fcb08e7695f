"""A loop that dataclasses describe: phases with their own optimizer, each many steps long."""

import dataclasses
import itertools
import time

import torch
from torch import nn


@dataclasses.dataclass
class Phase:
    name: str
    steps: int
    rate: float
    pause: float
    layers: list = dataclasses.field(default_factory=list)

    def optimizer(self):
        return torch.optim.Adam([p for layer in self.layers for p in layer.parameters()], lr=self.rate)


@dataclasses.dataclass(slots=False)
class Run:
    net: nn.Module
    phases: tuple
    done: int = 0

    def __iter__(self):
        for phase in self.phases:
            yield from zip(itertools.repeat(phase), range(phase.steps))

    def step(self, phase, optimizer):
        loss = self.net(torch.randn(8, 16)).square().mean()
        time.sleep(phase.pause)  # = 7
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.done += 1


net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
run = Run(net, (Phase("head", 4, 1e-3, 0.02, [net[2]]), Phase("all", 100000, 1e-4, 0.007, [net[0], net[2]])))
optimizers = {}
for phase, at in run:
    optimizer = optimizers.setdefault(phase.name, None) or phase.optimizer()
    optimizers[phase.name] = optimizer
    time.sleep(0.004)  # = 4
    run.step(phase, optimizer)
