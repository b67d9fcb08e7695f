"""Distils a scripted controller into a wide policy network."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Plan:
    observation: int = 48
    actions: int = 12
    widths: tuple = (1024, 1024, 512)
    batch: int = 64
    steps: int = 300
    optimizer: type = torch.optim.AdamW
    settings: dict = field(default_factory=lambda: {"lr": 3e-4, "weight_decay": 0.01})  # flaw: per-tensor-optimizer


class Controller:
    """Linear feedback with saturation."""

    def __init__(self, plan, generator):
        self.gain = torch.randn(plan.observation, plan.actions, generator=generator) / plan.observation ** 0.5
        self.generator = generator
        self.shape = (plan.batch, plan.observation)

    def demonstrations(self, steps):
        for _ in range(steps):
            seen = torch.randn(self.shape, generator=self.generator)
            yield seen, torch.tanh(2.0 * seen @ self.gain)


class Student(nn.Module):
    def __init__(self, plan):
        super().__init__()
        sizes = (plan.observation, *plan.widths)
        self.trunk = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(sizes[-1], plan.actions)

    def forward(self, x):
        for layer in self.trunk:
            x = F.silu(layer(x))
        return torch.tanh(self.head(x))


class Session:
    def __init__(self, plan):
        torch.manual_seed(0)
        self.plan = plan
        self.student = Student(plan)
        self.optimizer = plan.optimizer(self.student.parameters(), **plan.settings)
        self.controller = Controller(plan, torch.Generator().manual_seed(44))

    def run(self):
        total = 0.0
        for seen, wanted in self.controller.demonstrations(self.plan.steps):
            loss = F.mse_loss(self.student(seen), wanted)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / self.plan.steps


if __name__ == "__main__":
    print(f"mean imitation error {Session(Plan()).run():.5f}")
